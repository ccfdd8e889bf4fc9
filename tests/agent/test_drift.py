"""What runs is what a person approved, or nothing."""

from dataclasses import replace
from typing import Any

import pytest

from agent.approvals import Permission
from agent.batch import BatchResult, run_batch
from agent.failures import Bug, Infrastructure
from tests import faults
from tests.agent.approved import approved, contradicted, edited, everything, preview
from tests.agent.batches import Desk, make_customer, move_credit

SEPTEMBER = {"billing_period": "2026-09-01", "currency": "EUR"}
INVOICE = ("CreateInvoice", {**SEPTEMBER, "amount_minor": 4900})
CREDIT = ("ApplyCredit", {**SEPTEMBER, "amount_minor": 900})
CHARGE = ("QueueCharge", {**SEPTEMBER, "amount_minor": 4000})
WHOLE_CHARGE = ("QueueCharge", {**SEPTEMBER, "amount_minor": 4900})
PAID_OUT = ("ApplyCredit", {"amount_minor": 1000, "currency": "EUR"})


def make_invoice(desk: Desk) -> int:
    """Have the agent make September's invoice."""
    assert run_batch(desk.pool, batch=desk.batch(INVOICE)).kind == "applied"
    return int(desk.scalar("SELECT id FROM public.billing_invoice"))


def run(desk: Desk, batch: Any) -> BatchResult:
    return run_batch(desk.pool, batch=batch)


def test_what_was_approved_runs(desk: Desk) -> None:
    batch = desk.batch(INVOICE, CREDIT, CHARGE)
    result = run(desk, approved(batch, preview(desk, batch)))
    assert (result.kind, [answer.status for answer in result.answers]) == ("applied", ["applied"] * 3)
    assert all(answer.text.startswith("{") for answer in result.answers)
    assert desk.outcomes()[-1]["told"] is None


CHANGES = {
    "a row changed by hand, its timestamps left alone": "UPDATE public.billing_invoice SET description = 'By hand'",
    "an amount of the same row": "UPDATE public.billing_invoice SET amount_minor = 5000, amount_due_minor = 5000",
    "the card that would be charged": "UPDATE public.billing_customer SET provider_payment_method = 'pm_other'",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_changed_since_stops_it(desk: Desk, change: str) -> None:
    make_invoice(desk)
    batch = desk.batch(CREDIT, CHARGE)
    made = preview(desk, batch)
    with desk.owner.transaction():
        desk.owner.execute(change)
    before = everything(desk)
    result = run(desk, approved(batch, made))
    assert (result.kind, result.answers) == ("drifted", [])
    assert everything(desk) == before | {
        "ledger_attempt": before["ledger_attempt"] + 1,
        "ledger_attempt_outcome": before["ledger_attempt_outcome"] + 1,
    }
    outcome = desk.outcomes()[-1]
    assert (outcome["outcome"], outcome["told"]) == ("drifted", None)
    assert result.attempt_id == outcome["attempt_id"]


def test_a_permission_that_is_pinned_to_nothing_runs_nothing(desk: Desk) -> None:
    batch = desk.batch(INVOICE)
    result = run(desk, approved(batch, replace(preview(desk, batch), digest=None)))
    assert (result.kind, result.answers) == ("drifted", [])
    assert desk.count("billing_invoice") == 0


def test_the_evidence_says_what_would_have_happened_and_it_can_be_approved_again(desk: Desk, keeper: Any) -> None:
    make_invoice(desk)
    batch = desk.batch(CREDIT)
    made = preview(desk, batch)
    move_credit(desk.owner, desk.customer, amount_minor=100)
    assert run(desk, approved(batch, made)).kind == "drifted"
    account = next(row for row in desk.outcomes()[-1]["undone"] if row["table_name"] == "billing_credit_account")
    assert (account["before"]["balance_minor"], account["after"]["balance_minor"]) == (5100, 4200)
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 5100
    assert run(desk, approved(batch, preview(desk, batch))).kind == "applied"
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4200
    assert contradicted(keeper, "ledger") == []


def test_what_would_fail_now_is_asked_about_again_and_not_told(desk: Desk) -> None:
    batch = desk.batch(INVOICE, PAID_OUT)
    made = preview(desk, batch)
    move_credit(desk.owner, desk.customer, amount_minor=-4500)
    assert run(desk, approved(batch, made)).kind == "drifted"
    outcome = desk.outcomes()[-1]
    assert (outcome["failed_call"], outcome["constraint_name"]) == (1, "billing_credit_balance_not_negative")
    assert [row["call_index"] for row in outcome["undone"]] == [0]
    assert desk.count("ledger_batch_abort") == desk.count("billing_invoice") == 0


def test_data_that_is_busy_is_no_drift(desk: Desk, connect: Any) -> None:
    batch, other = desk.batch(PAID_OUT), connect("owner")
    made = preview(desk, batch)
    faults.hold(other, "SELECT FROM public.billing_credit_account FOR UPDATE")
    with pytest.raises(Infrastructure):
        run(desk, approved(batch, made))
    faults.let_go(other)
    assert desk.outcomes()[-1]["outcome"] == "infrastructure"
    assert run(desk, approved(batch, made)).kind == "applied"


def test_what_happens_elsewhere_is_no_drift(desk: Desk) -> None:
    batch = desk.batch(INVOICE, CREDIT, CHARGE)
    made = preview(desk, batch)
    other = replace(desk, customer=make_customer(desk.owner, credit_minor=900))
    for month in ("2026-07-01", "2026-08-01"):
        call = ("CreateInvoice", {"billing_period": month, "amount_minor": 100, "currency": "EUR"})
        assert run(desk, other.batch(call, ai_message_id=month)).kind == "applied"
    assert run(desk, approved(batch, made)).kind == "applied"


def test_a_rule_that_measures_more_by_now_holds_again(desk: Desk) -> None:
    desk.set_policy("per_call", 500, tool="ApplyCredit")
    batch = desk.batch(PAID_OUT)
    made = preview(desk, batch)
    desk.set_policy("per_call", 400, tool="CreateInvoice")
    assert run(desk, approved(batch, made)).kind == "applied"
    more = desk.batch(("ApplyCredit", {"amount_minor": 1001, "currency": "EUR"}))
    assert run(desk, approved(more, made)).kind == "held"


# -- edited, dropped, taken over -------------------------------------------------------------------


def changed(desk: Desk, **decided: Any) -> Any:
    """Return a batch of which a reviewer lowered the first call's amount and removed the second call."""
    batch = desk.batch(PAID_OUT, ("ApplyCredit", {"amount_minor": 50, "currency": "EUR"}), INVOICE)
    revised = edited(batch, 0, amount_minor=800)
    kept = tuple(call for call in revised.calls if call.index != 1)
    made = preview(desk, replace(revised, calls=kept))
    assert made.outcome == "clean"
    changes = {0: (("amount_minor", 1000, 800),)}
    permission = {"calls": kept, "changes": changes, "dropped": {1: "Not agreed."}} | decided
    return replace(approved(batch, made, **permission), generation=1)


def test_an_edited_batch_runs_as_edited_and_every_call_is_answered_once(desk: Desk, keeper: Any) -> None:
    batch = changed(desk)
    result = run(desk, batch)
    assert result.kind == "applied"
    first, second, third = result.answers
    assert [answer.call_index for answer in result.answers] == [0, 1, 2]
    assert first.text.startswith("APPLIED AS CHANGED BY A REVIEWER (amount_minor: 1000 → 800): {")
    assert (second.status, second.text) == (
        "dropped",
        "NOT APPLIED: a reviewer removed this call. Not agreed. Do not send it again.",
    )
    assert third.text.startswith('{"amount_due_minor": 4900')
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4200
    rows = desk.owner.execute("SELECT call_index, generation, performed_by FROM public.ledger_execution ORDER BY 1").fetchall()
    assert rows == [(0, 1, None), (2, 1, None)]
    assert contradicted(keeper) == []


def test_a_replay_of_an_edited_batch_answers_the_same_and_applies_nothing(desk: Desk) -> None:
    batch = changed(desk)
    first, second = run(desk, batch), run(desk, batch)
    assert (first.kind, first.answers) == (second.kind, second.answers)
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4200
    assert desk.count("ledger_execution") == 2
    with pytest.raises(Bug):  # the model's own calls are not what was applied
        run(desk, replace(batch, permission=None))


def test_the_attempt_says_what_was_to_run(desk: Desk) -> None:
    batch = changed(desk)
    run(desk, batch)
    calls = desk.scalar("SELECT calls FROM public.ledger_attempt")
    assert [(call["index"], call["arguments"].get("amount_minor"), call.get("dropped")) for call in calls] == [
        (0, 800, None),
        (1, 50, True),
        (2, 4900, None),
    ]


def test_a_batch_that_a_person_performs_is_marked_as_theirs(desk: Desk, keeper: Any) -> None:
    batch = changed(desk, performed_by=42)
    result = run(desk, batch)
    assert result.answers[0].text.startswith("APPLIED BY A PERSON (amount_minor: 1000 → 800): {")
    assert result.answers[2].text.startswith("APPLIED BY A PERSON: {")
    assert desk.owner.execute("SELECT DISTINCT performed_by, on_behalf_of FROM public.ledger_execution").fetchall() == [(42, 7)]
    assert desk.scalar("SELECT performed_by FROM public.ledger_attempt") == 42
    assert run(desk, batch).answers == result.answers
    assert contradicted(keeper) == []


def test_an_edit_is_validated_and_judged_as_any_batch(desk: Desk) -> None:
    desk.set_policy("per_call", 500, tool="ApplyCredit")
    batch = changed(desk)
    bad = edited(batch, 0, amount_minor=-1).calls[::2]
    refused = run(desk, replace(batch, permission=replace(batch.permission, calls=bad)))
    assert (refused.kind, [answer.status for answer in refused.answers]) == ("refused", ["failed", "dropped", "never_ran"])
    unwaived = replace(batch, generation=2, permission=replace(batch.permission, waived=()))
    assert run(desk, unwaived).kind == "held"


def test_a_permission_that_forgets_a_call_runs_nothing(desk: Desk) -> None:
    batch = changed(desk, dropped={})
    with pytest.raises(Bug):
        run(desk, batch)
    assert desk.count("ledger_execution") == 0


def test_a_batch_of_which_nothing_is_left_is_answered(desk: Desk) -> None:
    batch = desk.batch(PAID_OUT)
    permission = Permission(decision=1, escalation=1, calls=(), dropped={0: "No."})
    result = run(desk, replace(batch, permission=permission))
    assert (result.kind, [answer.status for answer in result.answers]) == ("rejected", ["dropped"])
    assert run(desk, replace(batch, permission=permission)).answers == result.answers
    assert desk.count("ledger_execution") == 0
