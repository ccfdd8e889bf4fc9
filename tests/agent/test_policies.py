"""What the gate reads of the ledger and the desk."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from agent import policies
from agent.batch import run_batch
from agent.gate import Facts
from agent.tools import registry
from agent.validation import check
from escalations import lifecycle
from tests.agent.batches import Desk, hold_thread

Connection = psycopg.Connection[Any]
CREATE = ("CreateInvoice", {"billing_period": "2026-11-01", "amount_minor": 48_000, "currency": "EUR"})
MEMO = ("IssueCreditMemo", {"billing_period": "2026-11-01", "amount_minor": 900, "currency": "EUR", "reason": "Outage"})


def read(desk: Desk, *calls: tuple[str, dict[str, Any]], conn: Connection | None = None, **whose: Any) -> Facts:
    """Return the facts about these calls, as the agent's worker reads them."""
    valid, problems = check(desk.batch(*calls).calls, tools=registry(), subject=desk.customer)
    assert not problems
    asked: dict[str, Any] = {"thread": desk.thread, "subject": desk.customer, "on_behalf_of": 7, "calls": valid} | whose
    if conn:
        return policies.facts(conn, **asked)
    with desk.pool.connection() as ours:
        return policies.facts(ours, **asked)


def applied(desk: Desk, *calls: tuple[str, dict[str, Any]], **changes: Any) -> None:
    """Run a step."""
    assert run_batch(desk.pool, batch=desk.batch(*calls, **changes)).kind == "applied"


def sets(superuser: Connection, rule: str, value: int | None, *, tool: str = "", currency: str = "") -> None:
    """Set a number whatever it loosens, as the database lets nobody do."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "INSERT INTO public.agent_policy (rule, tool, currency, value, previous, reason, set_by)"
            " VALUES (%s, %s, %s, %s, %s, 'because', 1)",
            (rule, tool, currency, value, value),
        )


# -- facts -------------------------------------------------------------------------------------


def test_it_knows_the_customers_currency_and_card(desk: Desk) -> None:
    assert read(desk, CREATE).domain == {"currency": "EUR", "card": "4242", "invoices": {}, "cards": {}}


def test_it_asks_nothing_about_what_only_reads(desk: Desk, agent: Connection) -> None:
    agent.close()
    assert read(desk, ("LookUpCustomer", {}), conn=agent) == Facts()


def test_it_sees_nothing_of_another_customer(desk: Desk) -> None:
    assert read(desk, CREATE, subject=desk.customer + 1).domain == {}


def test_it_leaves_no_subject_behind(desk: Desk, agent: Connection) -> None:
    read(desk, CREATE, conn=agent)
    assert agent.execute("SELECT current_setting('backstop.subject', true)").fetchone() in [("",), (None,)]
    assert agent.execute("SELECT count(*) FROM public.billing_customer").fetchone() == (0,)


def test_it_takes_the_newest_number(desk: Desk, owner: Connection) -> None:
    owner.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('per_call', 'QueueRefund', '', 20000, 'x', 1), ('per_call', 'QueueRefund', '', 10000, 'x', 1),"
        " ('per_call', 'QueueRefund', 'EUR', 9000, 'x', 1), ('customer_day', '', '', 5, 'x', 1)"
    )
    facts = read(desk, CREATE)
    assert facts.limit("per_call", tool="QueueRefund", currency="JPY").value == 10_000
    assert facts.limit("per_call", tool="QueueRefund", currency="EUR").value == 9_000
    assert facts.limit("per_call", tool="CreateInvoice", currency="EUR", default=1).version == 0
    assert [(key, limit.value) for key, limit in facts.windows.items()] == [(("customer_day", ""), 5)]
    with desk.pool.connection() as conn:
        assert policies.version(conn) == f"policy {facts.version}"


def test_it_finds_the_same_effect_by_whatever_name(desk: Desk) -> None:
    applied(desk, CREATE, MEMO)
    invoice = desk.scalar("SELECT id FROM public.billing_invoice")
    by_id = {key: value for key, value in MEMO[1].items() if key != "billing_period"} | {"invoice_id": invoice, "reason": "Other"}
    for call in (MEMO, ("IssueCreditMemo", by_id)):
        facts = read(desk, call)
        assert [(item.effect == facts.effects[0], item.here) for item in facts.past] == [(True, True)]
    facts = read(desk, ("IssueCreditMemo", by_id | {"amount_minor": 901}))
    assert [item.effect == facts.effects[0] for item in facts.past] == [False]


def test_it_looks_back_for_this_customer_only_and_so_long_only(desk: Desk, owner: Connection, superuser: Connection) -> None:
    applied(desk, CREATE, MEMO)
    elsewhere = hold_thread(owner)
    assert [item.here for item in read(desk, MEMO, thread=elsewhere).past] == [False]
    assert read(desk, MEMO, thread=elsewhere, subject=desk.customer + 1).past == []
    _age(superuser, hours=25)
    assert read(desk, MEMO, thread=elsewhere).past == []
    assert len(read(desk, MEMO).past) == 1
    sets(superuser, "same_effect", 48, tool="IssueCreditMemo")
    assert len(read(desk, MEMO, thread=elsewhere).past) == 1
    sets(superuser, "same_effect", None, tool="IssueCreditMemo")
    assert read(desk, MEMO).past == []


def _age(superuser: Connection, *, hours: int) -> None:
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE public.ledger_execution SET committed_at = committed_at - make_interval(hours => %s)", (hours,))


def test_a_second_credit_memo_of_the_same_amount_waits(desk: Desk) -> None:
    applied(desk, CREATE, MEMO)
    held = run_batch(desk.pool, batch=desk.batch(MEMO))
    assert (held.kind, [(v.rule, v.measured) for v in held.verdicts]) == ("held", [("same_effect", 1)])


def test_a_step_that_comes_again_is_answered_and_not_held(desk: Desk) -> None:
    batch = desk.batch(CREATE, MEMO)
    assert [run_batch(desk.pool, batch=batch).kind for _ in range(2)] == ["applied", "applied"]


def test_it_counts_the_first_uses(desk: Desk, owner: Connection) -> None:
    applied(desk, CREATE)
    assert read(desk, CREATE).uses == {}
    owner.execute(
        "INSERT INTO public.agent_policy (rule, tool, value, reason, set_by) VALUES ('first_use', 'IssueCreditMemo', 1, 'x', 1)"
    )
    assert read(desk, CREATE, MEMO).uses == {"IssueCreditMemo": 0}
    held = run_batch(desk.pool, batch=desk.batch(MEMO))
    assert [verdict.rule for verdict in held.verdicts] == ["first_use"]


def test_it_reads_what_was_moved_so_far(desk: Desk, owner: Connection) -> None:
    applied(desk, CREATE)
    moved = {("customer_day", "EUR"): 48_000, ("staff_day", "EUR"): 48_000, ("conversation", "EUR"): 48_000}
    assert read(desk, MEMO).sums == moved
    assert read(desk, MEMO, on_behalf_of=8).sums == {key: value for key, value in moved.items() if key[0] != "staff_day"}
    owner.execute("INSERT INTO public.agent_policy (rule, value, reason, set_by) VALUES ('customer_day', 48899, 'x', 1)")
    held = run_batch(desk.pool, batch=desk.batch(MEMO))
    assert [(v.rule, v.measured, v.allowed) for v in held.verdicts] == [("customer_day", 48_900, 48_899)]


def test_another_currency_is_refused_before_anything_runs(desk: Desk) -> None:
    refused = run_batch(desk.pool, batch=desk.batch(("ApplyCredit", {"amount_minor": 1, "currency": "USD"})))
    assert (refused.kind, [verdict.rule for verdict in refused.verdicts]) == ("refused", ["currency"])
    assert f"Customer {desk.customer} is billed in EUR, so USD cannot be used." in refused.answers[0].text


def test_it_knows_the_card_that_an_invoice_was_paid_with(desk: Desk, owner: Connection) -> None:
    applied(desk, CREATE, ("QueueCharge", {key: CREATE[1][key] for key in CREATE[1]}))
    invoice = desk.scalar("SELECT id FROM public.billing_invoice")
    refund = ("QueueRefund", {**CREATE[1], "amount_minor": 100, "reason": "Doubled"})
    assert read(desk, refund).domain["cards"] == {}
    _settle(owner, invoice)
    assert read(desk, refund).domain["cards"] == {str(invoice): "4242"}
    owner.execute("UPDATE public.billing_customer SET card_last4 = '1881'")
    held = run_batch(desk.pool, batch=desk.batch(refund))
    assert [(v.action, v.rule) for v in held.verdicts] == [("hold", "destination")]


def _settle(owner: Connection, invoice: int) -> None:
    """Let the charge of an invoice be paid, as the provider's answer does."""
    with owner.transaction():
        owner.execute("UPDATE public.outbox_message SET provider_id = 'pi_1'")
        owner.execute("UPDATE public.billing_invoice SET status = 'paid', paid_at = now()")
        owner.execute(
            "INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id)"
            " SELECT customer_id, id, currency, amount_minor, 'pi_1' FROM public.billing_invoice WHERE id = %s",
            (invoice,),
        )


# -- turned down before --------------------------------------------------------------------------


def asks(desk: Desk, *calls: tuple[str, dict[str, Any]]) -> tuple[int, list[dict[str, Any]]]:
    """Put a held step to people; return the escalation and the calls of its first revision."""
    batch = desk.batch(*calls)
    proposed = [{"index": c.index, "id": c.id, "tool": c.tool, "arguments": c.arguments} for c in batch.calls]
    with desk.pool.connection() as conn:
        opened = lifecycle.open(
            conn,
            kind="approval",
            object=f"thread:{desk.thread}",
            payload={"reason": "Held", "phase": "before_answers", "calls": proposed, "verdicts": []},
            thread=desk.thread,
            interrupt_id=batch.ai_message_id,
            subject=desk.customer,
            requested_by=7,
            ai_message_id=batch.ai_message_id,
            calls=proposed,
        )
    return opened, proposed


def decides(superuser: Connection, escalation: int, kind: str, text: str, calls: list[dict[str, Any]] | None = None) -> None:
    """Write a decision as it would be found, whoever may make it."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        revision = None
        if calls is not None:
            [revision] = superuser.execute(
                "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash, author)"
                " VALUES (%s, 1, %s, '', 3) RETURNING id",
                (escalation, Jsonb(calls)),
            ).fetchone() or (None,)
        preview = superuser.execute("SELECT max(id) FROM public.escalations_preview").fetchone() or (None,)
        superuser.execute(
            "INSERT INTO public.escalations_decision (escalation_id, kind, text, revision_id, preview_id, needs, signed, waived,"
            " decided_by) VALUES (%s, %s, %s, %s, %s, 1, 1, '[]', %s)",
            (escalation, kind, text, revision, preview[0], None if kind == "expire" else 3),
        )


REFUND = ("QueueRefund", {"invoice_id": 1, "amount_minor": 32_000, "currency": "EUR", "reason": "Cancelled"})


def said(desk: Desk, *calls: tuple[str, dict[str, Any]], **whose: Any) -> list[list[str]]:
    """Return why each of these calls was turned down before."""
    facts = read(desk, *calls, **whose)
    return [[item.reason for item in facts.turned_down if item.effect == effect] for effect in facts.effects.values()]


def test_it_remembers_what_was_rejected_here(desk: Desk, superuser: Connection, owner: Connection) -> None:
    escalation, _ = asks(desk, REFUND)
    assert said(desk, REFUND) == [[]]
    decides(superuser, escalation, "reject", "Too much.")
    assert said(desk, REFUND, ("QueueRefund", {**REFUND[1], "reason": "Please"})) == [["Too much."], ["Too much."]]
    assert said(desk, ("QueueRefund", {**REFUND[1], "amount_minor": 31_999})) == [[]]
    assert said(desk, REFUND, thread=hold_thread(owner)) == [[]]
    again = run_batch(desk.pool, batch=desk.batch(("QueueRefund", {**REFUND[1], "reason": "Once more"})))
    assert [verdict.rule for verdict in again.verdicts] == ["rejected_before", "per_call"]
    assert "“Too much.”" in again.verdicts[0].sentence


def test_it_remembers_what_was_changed_or_removed(desk: Desk, superuser: Connection) -> None:
    escalation, calls = asks(desk, CREATE, REFUND, MEMO)
    changed = {**calls[1], "arguments": {**calls[1]["arguments"], "amount_minor": 28_000}}
    decides(superuser, escalation, "approve", "Two days only.", [calls[0], changed])
    assert said(desk, CREATE, REFUND, MEMO) == [[], ["Two days only."], ["Two days only."]]
    assert said(desk, ("QueueRefund", {**REFUND[1], "amount_minor": 28_000})) == [[]]


@pytest.mark.parametrize("kind", ["expire", "withdraw", "answer", "close", "retry"])
def test_only_a_reviewers_no_is_one(desk: Desk, superuser: Connection, kind: str) -> None:
    escalation, _ = asks(desk, REFUND)
    decides(superuser, escalation, kind, "No.")
    assert said(desk, REFUND) == [[]]


def test_a_month_that_was_rejected_is_known_by_its_invoice(desk: Desk, superuser: Connection) -> None:
    applied(desk, CREATE)
    invoice = desk.scalar("SELECT id FROM public.billing_invoice")
    escalation, _ = asks(desk, MEMO)
    decides(superuser, escalation, "reject", "No.")
    given = {key: value for key, value in MEMO[1].items() if key != "billing_period"}
    assert said(desk, ("IssueCreditMemo", given | {"invoice_id": invoice})) == [["No."]]


def test_a_month_without_an_invoice_is_no_other_month(desk: Desk, superuser: Connection) -> None:
    escalation, _ = asks(desk, MEMO)
    decides(superuser, escalation, "reject", "No.")
    assert said(desk, MEMO, ("IssueCreditMemo", {**MEMO[1], "billing_period": "2026-12-01"})) == [["No."], []]
