"""The promise: a batch is applied wholly or not at all, once, and its evidence names what failed."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from agent.approvals import Permission
from agent.batch import BatchResult, run_batch
from agent.failures import Bug, Infrastructure
from agent.leases import LeaseLost
from agent.tools import Arguments, Tool, registry
from agent.validation import ProposedCall
from ledger.refusals import Refusal
from tests.agent.approved import preview
from tests.agent.batches import Desk, hold_thread, make_customer, move_credit

INVOICE = ("CreateInvoice", {"billing_period": "2026-09-01", "amount_minor": 4900, "currency": "EUR"})
CHARGE = ("QueueCharge", {"billing_period": "2026-09-01", "amount_minor": 4900, "currency": "EUR"})


def credit(amount: int) -> tuple[str, dict[str, Any]]:
    return ("ApplyCredit", {"amount_minor": amount, "currency": "EUR"})


def untouched(desk: Desk) -> bool:
    """Nothing of any batch is there but the evidence that it was tried."""
    empty = ("billing_invoice", "billing_refund", "billing_payment", "ledger_execution", "outbox_message", "agent_window")
    return (
        all(desk.count(table) == 0 for table in empty)
        and desk.scalar("SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", desk.customer) == 5000
        and desk.count("ledger_row_change", "attempt_id IS NOT NULL") == 0
    )


# -- the three tests of the original brief ---------------------------------------------------------


def test_the_second_calls_failure_rolls_back_the_first(desk: Desk) -> None:
    result = run_batch(desk.pool, batch=desk.batch(INVOICE, credit(60_000), CHARGE))
    assert result.kind == "failed"
    assert [answer.status for answer in result.answers] == ["undone", "failed", "never_ran"]
    assert result.answers[1].text == "FAILED: The credit balance is €50.00 (5000 minor units), so €600.00 cannot be used."
    assert untouched(desk)


def test_a_replay_does_not_apply_twice(desk: Desk) -> None:
    batch = desk.batch(credit(1000))
    first, second = run_batch(desk.pool, batch=batch), run_batch(desk.pool, batch=batch)
    assert first.answers == second.answers
    assert (first.kind, second.kind) == ("applied", "applied")
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", desk.customer) == 4000
    assert desk.count("ledger_execution") == 1


def test_a_backend_terminated_mid_batch_leaves_the_tables_unchanged(desk: Desk, superuser: "psycopg.Connection[Any]") -> None:
    tools = dict(registry())

    def terminated(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return dict(tools["ApplyCredit"].run(conn, arguments, cause))

    mortal = tools | {"ApplyCredit": replace(tools["ApplyCredit"], run=terminated)}
    batch = desk.batch(INVOICE, credit(1000), CHARGE)
    with pytest.raises(Infrastructure):
        run_batch(desk.pool, batch=batch, tools=mortal)
    assert untouched(desk)
    assert desk.outcomes()[-1]["outcome"] == "infrastructure"
    assert run_batch(desk.pool, batch=batch).kind == "applied"
    assert (desk.count("billing_invoice"), desk.count("outbox_message"), desk.count("ledger_execution")) == (1, 1, 3)


def test_a_refusal_whose_evidence_was_lost_with_the_connection_is_run_again(
    desk: Desk, superuser: "psycopg.Connection[Any]"
) -> None:
    tools = dict(registry())

    def refused_and_terminated(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        raise Refusal("There is no such credit.")

    mortal = tools | {"ApplyCredit": replace(tools["ApplyCredit"], run=refused_and_terminated)}
    batch = desk.batch(INVOICE, credit(60_000))
    with pytest.raises(Infrastructure):
        run_batch(desk.pool, batch=batch, tools=mortal)
    assert run_batch(desk.pool, batch=batch).kind == "failed"
    lost, told = desk.outcomes()
    assert (lost["outcome"], lost["told"]) == ("infrastructure", None)
    assert (told["outcome"], told["failed_call"]) == ("rolled_back", 1)
    assert {row["call_index"] for row in told["undone"]} == {0}


# -- stories ---------------------------------------------------------------------------------------


def test_it_commits_a_corrected_batch_with_one_message(desk: Desk) -> None:
    on_invoice = {"billing_period": "2026-09-01", "currency": "EUR"}
    wrong = desk.batch(
        INVOICE,
        ("ApplyCredit", {**on_invoice, "amount_minor": 6000}),
        ("QueueCharge", {**on_invoice, "amount_minor": 0}),
    )
    assert run_batch(desk.pool, batch=wrong).kind == "failed"
    assert untouched(desk)
    right = desk.batch(
        INVOICE,
        ("ApplyCredit", {**on_invoice, "amount_minor": 4000}),
        ("QueueCharge", {**on_invoice, "amount_minor": 900}),
    )
    assert run_batch(desk.pool, batch=right).kind == "applied"
    assert desk.owner.execute("SELECT status, amount_due_minor FROM public.billing_invoice").fetchall() == [
        ("charge_queued", 900)
    ]
    assert desk.owner.execute("SELECT topic, state FROM public.outbox_message").fetchall() == [("payment.charge", "ready")]
    assert desk.count("ledger_execution") == 3


BAD = {
    "another customer's id": {"customer_id": 999_999, "amount_minor": 100, "currency": "EUR"},
    "a string with a stray quote": {"customer_id": "1'", "amount_minor": 100, "currency": "EUR"},
    "a negative amount": {"amount_minor": -100, "currency": "EUR"},
    "a date in the wrong format": {"amount_minor": 100, "currency": "EUR", "billing_period": "01.09.2026"},
    "an unknown argument": {"amount_minor": 100, "currency": "EUR", "force": True},
    "a number as text": {"amount_minor": "100", "currency": "EUR"},
    "a huge number": {"amount_minor": 10**40, "currency": "EUR"},
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_it_runs_nothing_when_one_call_is_invalid(desk: Desk, arguments: dict[str, Any]) -> None:
    result = run_batch(desk.pool, batch=desk.batch(INVOICE, ("ApplyCredit", arguments)))
    assert result.kind == "refused"
    assert [answer.status for answer in result.answers] == ["never_ran", "failed"]
    assert untouched(desk)
    assert desk.outcomes()[0]["outcome"] == "refused"


def call(index: int, id: str = "", tool: str = "CreateInvoice", problem: str | None = None) -> ProposedCall:  # noqa: A002
    return ProposedCall(index=index, id=id or f"c{index}", tool=tool, arguments={}, problem=problem)


REFUSED = {
    "an unknown tool": (call(0, tool="DropTables"),),
    "truncated JSON": (call(0, problem="The arguments were cut off."),),
    "the same id twice": (call(0, id="x"), call(1, id="x")),
    "an empty id": (ProposedCall(index=0, id="", tool="LookUpCustomer", arguments={}),),
    "too many calls": tuple(call(index) for index in range(21)),
}


@pytest.mark.parametrize("calls", REFUSED.values(), ids=REFUSED.keys())
def test_it_answers_every_call_of_a_malformed_batch_once(desk: Desk, calls: tuple[ProposedCall, ...]) -> None:
    result = run_batch(desk.pool, batch=desk.batch(calls=calls))
    assert result.kind == "refused"
    assert [answer.call_index for answer in result.answers] == list(range(len(calls)))
    assert untouched(desk)


# -- once, whatever happens ------------------------------------------------------------------------


def test_it_never_commits_what_the_model_was_told_failed(desk: Desk) -> None:
    batch = desk.batch(credit(6000))
    told = run_batch(desk.pool, batch=batch)
    move_credit(desk.owner, desk.customer, amount_minor=4000)  # now it would pass
    again = run_batch(desk.pool, batch=batch)
    assert (again.kind, again.answers) == (told.kind, told.answers)
    assert desk.count("ledger_execution", "tool = 'ApplyCredit'") == 0
    assert (
        run_batch(desk.pool, batch=desk.batch(calls=batch.calls, ai_message_id=batch.ai_message_id, generation=1)).kind
        == "applied"
    )


def test_it_refuses_a_worker_that_lost_its_lease(desk: Desk) -> None:
    desk.owner.execute("UPDATE public.agent_thread SET fence = 2")
    with pytest.raises(LeaseLost):
        run_batch(desk.pool, batch=desk.batch(credit(1000)))
    with pytest.raises(LeaseLost):
        run_batch(desk.pool, batch=desk.batch(("ApplyCredit", {"amount_minor": -1, "currency": "EUR"})))
    assert untouched(desk)
    assert desk.outcomes()[0]["outcome"] == "lost_lease"
    assert desk.count("ledger_batch_abort") == 0


def test_it_does_not_reach_another_customers_rows(desk: Desk) -> None:
    other = Desk(
        pool=desk.pool, owner=desk.owner, customer=make_customer(desk.owner, credit_minor=100), thread=hold_thread(desk.owner)
    )
    assert run_batch(other.pool, batch=other.batch(INVOICE)).kind == "applied"
    foreign = desk.scalar("SELECT id FROM public.billing_invoice")
    result = run_batch(desk.pool, batch=desk.batch(("VoidInvoice", {"invoice_id": foreign, "reason": "not mine"})))
    missing = run_batch(desk.pool, batch=desk.batch(("VoidInvoice", {"invoice_id": foreign + 1, "reason": "not there"})))
    assert result.kind == missing.kind == "failed"
    assert result.answers[0].text.replace(str(foreign), "N") == missing.answers[0].text.replace(str(foreign + 1), "N")
    assert desk.scalar("SELECT status FROM public.billing_invoice") == "draft"


# -- the gate --------------------------------------------------------------------------------------


def test_it_holds_above_the_limit_and_runs_what_was_approved(desk: Desk) -> None:
    desk.set_policy("per_call", 500, tool="ApplyCredit")
    batch = desk.batch(credit(1000))
    held = run_batch(desk.pool, batch=batch)
    assert (held.kind, held.answers) == ("held", [])
    (verdict,) = held.verdicts
    assert (verdict.rule, verdict.measured, verdict.allowed) == ("per_call", 1000, 500)
    assert untouched(desk)
    permission = Permission(decision=1, escalation=1, waived=(verdict.row(),), digest=preview(desk, batch).digest)
    approved = desk.batch(calls=batch.calls, ai_message_id=batch.ai_message_id, permission=permission)
    assert run_batch(desk.pool, batch=approved).kind == "applied"
    more = desk.batch(credit(1001), permission=permission)
    assert run_batch(desk.pool, batch=more).kind == "held"


def test_it_answers_a_rejected_batch_with_the_reason(desk: Desk) -> None:
    batch = desk.batch(INVOICE, credit(1000), rejection="The customer cancelled.")
    result = run_batch(desk.pool, batch=batch)
    assert {answer.status for answer in result.answers} == {"rejected"}
    assert result.answers[0].text.startswith("REJECTED: The customer cancelled.")
    assert untouched(desk)
    assert desk.outcomes()[0]["outcome"] == "rejected"


def test_it_changes_nothing_while_an_administrator_paused_changes(desk: Desk) -> None:
    desk.set_policy("kill_switch", 1)
    result = run_batch(desk.pool, batch=desk.batch(credit(1000)))
    assert result.kind == "refused"
    assert "paused" in result.answers[0].text
    assert untouched(desk)
    assert run_batch(desk.pool, batch=desk.batch(("LookUpCustomer", {}))).kind == "applied"
    desk.set_policy("kill_switch", 0)
    assert run_batch(desk.pool, batch=desk.batch(credit(1000))).kind == "applied"


# -- whatever fails, wherever its error surfaces: the attempt names the right call and statement ------

INSERT = (
    "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
    " VALUES (%s, make_date(2000 + %s, %s, %s), 'EUR', 100, 100) RETURNING id"
)
STATEMENTS = 3


def good(number: int, call: int) -> tuple[int, int, int]:
    return (number, call + 1, 1)


def bad(number: int, call: int) -> tuple[int, int, int]:
    return (number, call + 1, 2)  # not the first of a month: refused by a named constraint


def scripted(call: int, *, fails_at: int | None, fetched: bool, swallow: bool = False, raises: Exception | None = None) -> Tool:
    """Return a tool of three statements, of which one may fail, read at once or never."""

    def run(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        for number in range(1, STATEMENTS + 1):
            values = bad(number, call) if number == fails_at else good(number, call)
            try:
                cursor = conn.execute(INSERT, (arguments.customer_id, *values))
                if fetched:
                    cursor.fetchone()
            except psycopg.Error:
                if not swallow:
                    raise
        if raises:
            raise raises
        return {"call": call}

    class Nothing(Arguments):
        """Do something."""

    return Tool(name=f"Tool{call}", arguments=Nothing, run=run, proposed=str, applied=str)


def run_tools(desk: Desk, tools: list[Tool]) -> BatchResult:
    batch = desk.batch(*[(tool.name, {}) for tool in tools])
    return run_batch(desk.pool, batch=batch, tools={tool.name: tool for tool in tools})


def others(call: int, tool: Tool) -> list[Tool]:
    return [tool if index == call else scripted(index, fails_at=None, fetched=False) for index in range(3)]


@pytest.mark.parametrize("fetched", [True, False])
@pytest.mark.parametrize("statement", range(1, STATEMENTS + 1))
@pytest.mark.parametrize("call", range(3))
def test_it_names_the_call_and_the_statement(desk: Desk, call: int, statement: int, fetched: bool) -> None:
    result = run_tools(desk, others(call, scripted(call, fails_at=statement, fetched=fetched)))
    (outcome,) = desk.outcomes()
    assert (outcome["failed_call"], outcome["statement_number"]) == (call, statement)
    assert outcome["failed_statement"] == INSERT
    assert (outcome["sqlstate"], outcome["constraint_name"]) == ("23514", "billing_invoice_period_is_month")
    assert len(outcome["undone"]) == call * STATEMENTS
    assert [answer.status for answer in result.answers] == ["undone"] * call + ["failed"] + ["never_ran"] * (2 - call)
    assert (
        desk.count("billing_invoice")
        == desk.count("ledger_execution")
        == desk.count("ledger_row_change", "attempt_id IS NOT NULL")
        == 0
    )


@pytest.mark.parametrize("fetched", [True, False])
@pytest.mark.parametrize("call", range(3))
def test_it_applies_nothing_when_a_tool_swallows_an_error(desk: Desk, call: int, fetched: bool) -> None:
    result = run_tools(desk, others(call, scripted(call, fails_at=2, fetched=fetched, swallow=True)))
    (outcome,) = desk.outcomes()
    assert result.kind == "failed"
    assert (outcome["failed_call"], outcome["statement_number"], outcome["constraint_name"]) == (
        call,
        2,
        "billing_invoice_period_is_month",
    )
    assert desk.count("billing_invoice") == desk.count("ledger_execution") == 0


def test_it_takes_the_database_error_over_what_a_later_tool_raised(desk: Desk) -> None:
    tools = others(0, scripted(0, fails_at=3, fetched=False))
    tools[1] = scripted(1, fails_at=None, fetched=False, raises=Refusal("The second call said no."))
    run_tools(desk, tools)
    (outcome,) = desk.outcomes()
    assert (outcome["failed_call"], outcome["statement_number"], outcome["sqlstate"]) == (0, 3, "23514")


def test_it_names_the_call_that_refused(desk: Desk) -> None:
    result = run_tools(desk, others(1, scripted(1, fails_at=None, fetched=False, raises=Refusal("No."))))
    (outcome,) = desk.outcomes()
    assert (outcome["outcome"], outcome["failed_call"], outcome["sqlstate"]) == ("rolled_back", 1, None)
    assert len(outcome["undone"]) == 3 + 3  # its own rows are still there when nothing aborted the transaction
    assert result.answers[1].text == "FAILED: No."


def test_it_stops_at_what_nothing_expects(desk: Desk) -> None:
    with pytest.raises(Bug):
        run_tools(desk, others(2, scripted(2, fails_at=None, fetched=True, raises=KeyError("x"))))
    (outcome,) = desk.outcomes()
    assert (outcome["outcome"], outcome["failed_call"]) == ("bug", 2)
    assert desk.count("billing_invoice") == desk.count("ledger_batch_abort") == 0


@pytest.mark.parametrize("change", ["COMMIT", "ROLLBACK"])
def test_it_survives_a_tool_that_ends_the_transaction(desk: Desk, change: str) -> None:
    def run_it(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        conn.execute(change)
        return {}

    class Nothing(Arguments):
        """Do something."""

    rogue = Tool(name="Tool1", arguments=Nothing, run=run_it, proposed=str, applied=str)
    with pytest.raises(Bug):
        run_tools(desk, others(1, rogue))
    assert desk.outcomes()[-1]["outcome"] == "bug"


def test_it_keeps_the_failing_calls_own_changes_when_asked_to(desk: Desk, settings: Any) -> None:
    settings.BACKSTOP_TRACE_FAILED_CALL = True
    run_tools(desk, others(1, scripted(1, fails_at=3, fetched=True)))
    (outcome,) = desk.outcomes()
    assert [change["call_index"] for change in outcome["undone"]] == [0, 0, 0, 1, 1]
    assert outcome["undone"][4]["after"]["billing_period"] == "2002-02-01"
    assert desk.count("billing_invoice") == 0
