"""Whatever fails in a batch, wherever its error surfaces: the attempt names the right call and statement."""

from typing import Any

import psycopg
import pytest

from agent.batch import BatchResult, run_batch
from agent.failures import Bug
from agent.tools import Arguments, Tool
from ledger.refusals import Refusal
from tests.agent.batches import Desk

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


def run(desk: Desk, tools: list[Tool]) -> BatchResult:
    batch = desk.batch(*[(tool.name, {}) for tool in tools])
    return run_batch(desk.pool, batch=batch, tools={tool.name: tool for tool in tools})


def others(call: int, tool: Tool) -> list[Tool]:
    return [tool if index == call else scripted(index, fails_at=None, fetched=False) for index in range(3)]


@pytest.mark.parametrize("fetched", [True, False])
@pytest.mark.parametrize("statement", range(1, STATEMENTS + 1))
@pytest.mark.parametrize("call", range(3))
def test_it_names_the_call_and_the_statement(desk: Desk, call: int, statement: int, fetched: bool) -> None:
    result = run(desk, others(call, scripted(call, fails_at=statement, fetched=fetched)))
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
    result = run(desk, others(call, scripted(call, fails_at=2, fetched=fetched, swallow=True)))
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
    run(desk, tools)
    (outcome,) = desk.outcomes()
    assert (outcome["failed_call"], outcome["statement_number"], outcome["sqlstate"]) == (0, 3, "23514")


def test_it_names_the_call_that_refused(desk: Desk) -> None:
    result = run(desk, others(1, scripted(1, fails_at=None, fetched=False, raises=Refusal("No."))))
    (outcome,) = desk.outcomes()
    assert (outcome["outcome"], outcome["failed_call"], outcome["sqlstate"]) == ("rolled_back", 1, None)
    assert len(outcome["undone"]) == 3 + 3  # its own rows are still there when nothing aborted the transaction
    assert result.answers[1].text == "FAILED: No."


def test_it_stops_at_what_nothing_expects(desk: Desk) -> None:
    with pytest.raises(Bug):
        run(desk, others(2, scripted(2, fails_at=None, fetched=True, raises=KeyError("x"))))
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
        run(desk, others(1, rogue))
    assert desk.outcomes()[-1]["outcome"] == "bug"


def test_it_keeps_the_failing_calls_own_changes_when_asked_to(desk: Desk, settings: Any) -> None:
    settings.BACKSTOP_TRACE_FAILED_CALL = True
    run(desk, others(1, scripted(1, fails_at=3, fetched=True)))
    (outcome,) = desk.outcomes()
    assert [change["call_index"] for change in outcome["undone"]] == [0, 0, 0, 1, 1]
    assert outcome["undone"][4]["after"]["billing_period"] == "2002-02-01"
    assert desk.count("billing_invoice") == 0
