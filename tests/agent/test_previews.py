"""A preview does what a run does, shows all of it, and leaves nothing."""

from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from agent import preamble
from agent.batch import run_batch
from agent.leases import LeaseLost
from agent.tools import registry
from tests import faults
from tests.agent.approved import approved, everything, make_tool, preview
from tests.agent.batches import Desk, move_credit

SEPTEMBER = {"billing_period": "2026-09-01", "currency": "EUR"}
INVOICE = ("CreateInvoice", {**SEPTEMBER, "amount_minor": 4900})
CREDIT = ("ApplyCredit", {**SEPTEMBER, "amount_minor": 900})
CHARGE = ("QueueCharge", {**SEPTEMBER, "amount_minor": 4000})
LONE_CREDIT = ("ApplyCredit", {"amount_minor": 1000, "currency": "EUR"})


def test_it_shows_each_row_each_message_and_each_result_and_leaves_nothing(desk: Desk) -> None:
    before = everything(desk)
    made = preview(desk, desk.batch(INVOICE, CREDIT, CHARGE))
    assert everything(desk) == before
    assert (made.outcome, made.allowed, made.needs, made.verdicts, made.failure) == ("clean", True, 1, [], None)
    assert [(row["call_index"], row["table_name"], row["operation"]) for row in made.changes or ()] == [
        (0, "billing_invoice", "INSERT"),
        (1, "billing_credit_account", "UPDATE"),
        (1, "billing_invoice", "UPDATE"),
        (1, "billing_credit_entry", "INSERT"),
        (2, "billing_invoice", "UPDATE"),
    ]
    account = (made.changes or [])[1]
    assert (account["before"]["balance_minor"], account["after"]["balance_minor"]) == (5000, 4100)
    (message,) = made.messages or ()
    assert (message["call_index"], message["topic"]) == (2, "payment.charge")
    assert message["sentence"].startswith("Charge €40.00 to the card ending in 4242")
    assert (made.results or {})["1"]["credit_balance_minor"] == 4100
    assert made.duration_ms is not None
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 5000


def test_it_names_every_verdict_not_only_the_first(desk: Desk) -> None:
    desk.set_policy("per_call", 500, tool="ApplyCredit")
    desk.set_policy("per_call", 500, tool="CreateInvoice")
    desk.set_policy("customer_day", 5000)
    made = preview(desk, desk.batch(INVOICE, LONE_CREDIT))
    assert (made.outcome, made.allowed) == ("clean", False)
    assert {(verdict["call_index"], verdict["rule"]) for verdict in made.verdicts} == {
        (0, "per_call"),
        (1, "per_call"),
        (0, "customer_day"),
    }
    assert {v["measured"] for v in made.verdicts if v["rule"] == "customer_day"} == {5900}


def test_a_rule_that_refuses_is_shown_and_nothing_is_tried(desk: Desk) -> None:
    desk.set_policy("kill_switch", 1)
    made = preview(desk, desk.batch(LONE_CREDIT))
    assert (made.outcome, made.allowed, made.digest, made.changes) == ("refused", False, None, None)
    assert made.failure and "paused" in made.failure["sentence"]


def test_calls_that_are_not_sound_are_shown_as_such(desk: Desk) -> None:
    made = preview(desk, desk.batch(INVOICE, ("ApplyCredit", {"amount_minor": -1, "currency": "EUR"})))
    assert (made.outcome, made.digest) == ("invalid", None)
    assert made.failure and made.failure["call_index"] == 1
    assert "amount_minor" in made.failure["sentence"]


def test_it_shows_the_failing_call_in_words_and_in_the_databases(desk: Desk) -> None:
    before = everything(desk)
    made = preview(desk, desk.batch(INVOICE, ("ApplyCredit", {"amount_minor": 6000, "currency": "EUR"}), CHARGE))
    assert everything(desk) == before
    assert (made.outcome, made.allowed, made.digest) == ("fails", False, None)
    failure = made.failure or {}
    assert failure["sentence"] == "The credit balance is €50.00 (5000 minor units), so €60.00 cannot be used."
    assert (failure["call_index"], failure["sqlstate"], failure["constraint"], failure["table"]) == (
        1,
        "23514",
        "billing_credit_balance_not_negative",
        "billing_credit_account",
    )
    assert failure["statement"].startswith("WITH account AS")
    assert [row["call_index"] for row in made.changes or ()] == [0]


def only_the_balance(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
    """Change a balance without its entry: the deferred constraint trigger finds it after the call."""
    conn.execute(
        "UPDATE public.billing_credit_account SET balance_minor = balance_minor - 1 WHERE customer_id = %s",
        (arguments.customer_id,),
    )
    return {}


def test_what_is_checked_late_fails_in_the_preview_as_in_the_run(desk: Desk) -> None:
    tools = dict(registry()) | {"Skim": make_tool("Skim", only_the_balance)}
    batch = desk.batch(INVOICE, ("Skim", {}))
    made = preview(desk, batch, tools=tools)
    failure = made.failure or {}
    assert (made.outcome, failure["call_index"], failure["constraint"]) == ("fails", 1, "billing_credit_balance_is_sum")
    ran = run_batch(desk.pool, batch=batch, tools=tools)
    (outcome,) = desk.outcomes()
    assert ran.answers[1].text == f"FAILED: {failure['sentence']}"
    assert (outcome["failed_call"], outcome["constraint_name"], outcome["sqlstate"]) == (
        1,
        failure["constraint"],
        failure["sqlstate"],
    )
    assert (outcome["failed_statement"], outcome["statement_number"]) == (failure["statement"], failure["statement_number"])


def test_what_a_trigger_adds_is_seen_by_both(desk: Desk, superuser: "psycopg.Connection[Any]") -> None:
    superuser.execute(
        "CREATE FUNCTION public.test_surcharge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " NEW.amount_due_minor := NEW.amount_due_minor - 7; RETURN NEW; END $$;"
        " CREATE TRIGGER test_surcharge BEFORE INSERT ON public.billing_invoice"
        " FOR EACH ROW EXECUTE FUNCTION public.test_surcharge()"
    )
    try:
        batch = desk.batch(INVOICE)
        made = preview(desk, batch)
        assert [row["after"]["amount_due_minor"] for row in made.changes or ()] == [4893]
        assert run_batch(desk.pool, batch=approved(batch, made)).kind == "applied"
        assert desk.scalar("SELECT amount_due_minor FROM public.billing_invoice") == 4893
    finally:
        superuser.execute("DROP FUNCTION public.test_surcharge() CASCADE")


def test_a_row_that_somebody_holds_makes_it_unavailable_and_soon(desk: Desk, connect: Any) -> None:
    other, before = connect("owner"), everything(desk)
    faults.hold(other, "SELECT FROM public.billing_credit_account FOR UPDATE")
    made = preview(desk, desk.batch(LONE_CREDIT))
    faults.let_go(other)
    assert (made.outcome, made.allowed, made.digest) == ("unavailable", False, None)
    assert made.duration_ms is not None
    assert 400 < made.duration_ms < 1900
    assert everything(desk) == before


def test_a_batch_of_the_same_thread_that_runs_makes_it_unavailable(desk: Desk, connect: Any) -> None:
    other = connect("owner")
    faults.hold(other, f"SELECT pg_advisory_xact_lock({preamble.lock_key(desk.thread)})")
    assert preview(desk, desk.batch(LONE_CREDIT)).outcome == "unavailable"
    faults.let_go(other)
    assert preview(desk, desk.batch(LONE_CREDIT)).outcome == "clean"


def test_a_connection_that_dies_makes_it_unavailable(desk: Desk, superuser: "psycopg.Connection[Any]") -> None:
    def terminated(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return {}

    before = everything(desk)
    made = preview(desk, desk.batch(("Die", {})), tools={"Die": make_tool("Die", terminated)})
    assert made.outcome == "unavailable"
    assert everything(desk) == before


def test_a_tool_that_breaks_is_shown_as_failing(desk: Desk) -> None:
    def breaks(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        raise KeyError("x")

    made = preview(desk, desk.batch(("Break", {})), tools={"Break": make_tool("Break", breaks)})
    assert made.outcome == "fails"
    assert made.failure and made.failure["sentence"].startswith("Something unexpected failed.")
    assert "KeyError" in made.failure["detail"]


def test_a_worker_that_lost_its_lease_makes_none(desk: Desk) -> None:
    desk.owner.execute("UPDATE public.agent_thread SET fence = 2")
    with pytest.raises(LeaseLost):
        preview(desk, desk.batch(LONE_CREDIT))


def test_a_step_that_was_applied_has_nothing_left_to_show(desk: Desk) -> None:
    batch = desk.batch(LONE_CREDIT)
    run_batch(desk.pool, batch=batch)
    made = preview(desk, batch)
    assert (made.outcome, (made.failure or {})["sentence"]) == ("fails", "This step was applied already.")


def test_a_step_that_the_model_was_told_failed_can_be_tried_for_a_reviewer(desk: Desk) -> None:
    batch = desk.batch(("ApplyCredit", {"amount_minor": 6000, "currency": "EUR"}))
    assert run_batch(desk.pool, batch=batch).kind == "failed"
    move_credit(desk.owner, desk.customer, amount_minor=4000)
    assert preview(desk, batch).outcome == "clean"


def test_it_is_the_same_again_while_nothing_changes_and_leaves_no_transaction_open(desk: Desk) -> None:
    batch = desk.batch(INVOICE, CREDIT, CHARGE)
    digests = {preview(desk, batch).digest for _ in range(3)}
    assert len(digests) == 1
    assert digests != {preview(desk, desk.batch(INVOICE, CREDIT)).digest}
    with desk.pool.connection() as conn:
        assert conn.info.transaction_status is TransactionStatus.IDLE
        assert conn.cursor_factory is psycopg.Cursor
