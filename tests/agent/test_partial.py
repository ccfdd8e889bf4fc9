"""Batches of calls that declare that they do not depend on each other: what fails is undone alone, and told."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from agent.batch import BatchResult, run_batch
from agent.failures import Bug, Infrastructure
from agent.leases import LeaseLost
from agent.tools import Tool, registry
from ledger.refusals import Refusal
from tests.agent.approved import approved, make_tool, preview
from tests.agent.batches import Desk

INSERT = (
    "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
    " VALUES (%s, make_date(2001, %s, %s), 'EUR', 100, 100) RETURNING id"
)


def writes(month: int, *, day: int = 1, fetched: bool = False, swallow: bool = False, raises: Exception | None = None) -> Tool:
    """Return an independent tool that makes two invoices; another day than the first is refused by a constraint."""

    def run(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        for at, on in ((month, 1), (month + 6, day)):
            try:
                cursor = conn.execute(INSERT, (arguments.customer_id, at, on))
                if fetched:
                    cursor.fetchone()
            except psycopg.Error:
                if not swallow:
                    raise
        if raises:
            raise raises
        return {"month": month}

    return make_tool(f"Tool{month}", run, independent="a test")


def run_tools(desk: Desk, *tools: Tool) -> BatchResult:
    batch = desk.batch(*[(tool.name, {}) for tool in tools])
    return run_batch(desk.pool, batch=batch, tools={tool.name: tool for tool in tools})


FAILURES: dict[str, dict[str, Any]] = {
    "read at once": {"day": 2, "fetched": True},
    "never read": {"day": 2},
    "swallowed": {"day": 2, "swallow": True, "fetched": True},
    "swallowed and never read": {"day": 2, "swallow": True},
    "a refusal": {"raises": Refusal("No.")},
    "a refusal over a database error": {"day": 2, "raises": Refusal("No.")},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failing_call_is_undone_alone(desk: Desk, failing: int, failure: dict[str, Any]) -> None:
    tools = [writes(month + 1, **(failure if month == failing else {})) for month in range(3)]
    result = run_tools(desk, *tools)
    assert result.kind == "applied"
    assert [answer.status for answer in result.answers] == ["failed" if at == failing else "applied" for at in range(3)]
    assert result.answers[failing].text.startswith("FAILED: ")
    assert result.answers[failing].text.endswith("do not resend those of this step that were applied.")
    (outcome,) = desk.outcomes()
    assert (outcome["outcome"], outcome["partial"], outcome["failed_call"]) == ("committed", True, failing)
    assert outcome["told"] == [result.answers[failing].row()]
    if "day" in failure:
        assert (outcome["constraint_name"], outcome["statement_number"]) == ("billing_invoice_period_is_month", 2)
    months = desk.owner.execute(
        "SELECT extract(month FROM billing_period)::int FROM public.billing_invoice ORDER BY 1"
    ).fetchall()
    assert [month for (month,) in months] == sorted(m for at in range(3) if at != failing for m in (at + 1, at + 7))
    assert desk.count("ledger_execution") == 2
    assert desk.count("ledger_batch_abort") == 0
    assert desk.count("ledger_row_change", f"attempt_id IS NOT NULL AND call_index = {failing}") == 0


def test_a_replay_answers_the_same_and_tries_nothing_again(desk: Desk) -> None:
    tools = [writes(1), writes(2, day=2), writes(3)]
    batch = desk.batch(*[(tool.name, {}) for tool in tools])
    by_name = {tool.name: tool for tool in tools}
    first = run_batch(desk.pool, batch=batch, tools=by_name)
    mended = by_name | {"Tool2": writes(2)}  # now it would pass
    second = run_batch(desk.pool, batch=batch, tools=mended)
    assert (first.kind, first.answers) == (second.kind, second.answers)
    assert desk.count("billing_invoice") == 4


def test_when_all_fail_nothing_is_applied_and_each_is_told_why(desk: Desk) -> None:
    result = run_tools(desk, writes(1, raises=Refusal("Not one.")), writes(2, raises=Refusal("Not two.")))
    assert (result.kind, [answer.text for answer in result.answers]) == ("failed", ["FAILED: Not one.", "FAILED: Not two."])
    (outcome,) = desk.outcomes()
    assert (outcome["outcome"], outcome["partial"], outcome["failed_call"], outcome["undone"]) == ("rolled_back", False, 0, [])
    assert desk.count("ledger_batch_abort") == 1
    assert desk.count("billing_invoice") == 0


def test_one_tool_that_depends_makes_the_whole_batch_depend(desk: Desk) -> None:
    result = run_tools(desk, writes(1), replace(writes(2), independent=""), writes(3, day=2))
    assert [answer.status for answer in result.answers] == ["undone", "undone", "failed"]
    assert desk.count("billing_invoice") == 0


def test_what_the_model_cannot_correct_ends_the_whole_batch(desk: Desk, superuser: "psycopg.Connection[Any]") -> None:
    with pytest.raises(Bug):
        run_tools(desk, writes(1), writes(2, raises=KeyError("x")), writes(3))
    assert (desk.outcomes()[-1]["outcome"], desk.outcomes()[-1]["failed_call"]) == ("bug", 1)

    def terminated(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return {}

    with pytest.raises(Infrastructure):
        run_tools(desk, writes(1), make_tool("Die", terminated, independent="a test"), writes(3))
    with pytest.raises(Bug):  # ends the transaction behind the batch's back
        run_tools(desk, writes(1), make_tool("End", lambda conn, *_: conn.execute("COMMIT"), independent="a test"))
    desk.owner.execute("UPDATE public.agent_thread SET fence = 2")
    with pytest.raises(LeaseLost):
        run_tools(desk, writes(1), writes(2, day=2), writes(3))
    assert desk.count("billing_invoice") == desk.count("ledger_execution") == desk.count("ledger_batch_abort") == 0


def independent(*names: str) -> dict[str, Tool]:
    """Return the installed tools with these declared independent."""
    return dict(registry()) | {name: replace(registry()[name], independent="a test") for name in names}


def credit(amount: int) -> tuple[str, dict[str, Any]]:
    return ("ApplyCredit", {"amount_minor": amount, "currency": "EUR"})


def test_a_sentence_has_the_facts_of_what_was_applied_before_it(desk: Desk) -> None:
    batch = desk.batch(credit(3000), credit(2500), credit(500))
    result = run_batch(desk.pool, batch=batch, tools=independent("ApplyCredit"))
    assert [answer.status for answer in result.answers] == ["applied", "failed", "applied"]
    said = "FAILED: The credit balance is €20.00 (2000 minor units), so €25.00 cannot be used."
    assert result.answers[1].text.startswith(said)
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 1500
    assert desk.count("agent_window", "amount = 3500") == 3  # only what was applied counts


def test_what_a_person_approved_is_applied_wholly_or_not_at_all(desk: Desk) -> None:
    tools = independent("ApplyCredit")
    batch = desk.batch(credit(3000), credit(2500))
    assert preview(desk, batch, tools=tools).outcome == "fails"
    small = desk.batch(credit(3000), credit(1500))
    made = preview(desk, small, tools=tools)
    desk.owner.execute("BEGIN")
    row = desk.owner.execute(
        "UPDATE public.billing_credit_account SET balance_minor = 4000, entries = entries + 1 RETURNING customer_id, entries"
    ).fetchone()
    desk.owner.execute(
        "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
        " VALUES (%s, %s, 'EUR', -1000, 4000, 'paid_out')",
        row,
    )
    desk.owner.execute("COMMIT")
    assert run_batch(desk.pool, batch=approved(small, made), tools=tools).kind == "drifted"
    assert desk.count("ledger_execution") == 0
