"""The tools that declare that they do not depend on their siblings do not: any of them may fail and leave the rest sound."""

from pathlib import Path
from typing import Any

import pytest

from agent.batch import run_batch
from agent.tools import registry
from billing import tools
from tests.agent.approved import contradicted
from tests.agent.batches import Desk

MONTHS = ("2026-01-01", "2026-02-01", "2026-03-01")
BASE = Path(__file__).resolve().parents[2]


def void(month: str) -> tuple[str, dict[str, Any]]:
    return ("VoidInvoice", {"billing_period": month, "reason": "A mistake"})


def make_invoices(desk: Desk) -> None:
    """Make three invoices, each of which has used 100 of the credit."""
    for month in MONTHS:
        on = {"billing_period": month, "currency": "EUR"}
        calls = [("CreateInvoice", {**on, "amount_minor": 1000}), ("ApplyCredit", {**on, "amount_minor": 100})]
        assert run_batch(desk.pool, batch=desk.batch(*calls)).kind == "applied"


@pytest.mark.parametrize("stays", MONTHS)
def test_an_invoice_that_cannot_be_voided_keeps_no_other_from_it(desk: Desk, keeper: Any, stays: str) -> None:
    make_invoices(desk)
    charge = ("QueueCharge", {"billing_period": stays, "amount_minor": 900, "currency": "EUR"})
    assert run_batch(desk.pool, batch=desk.batch(charge)).kind == "applied"
    result = run_batch(desk.pool, batch=desk.batch(("LookUpCustomer", {}), *[void(month) for month in MONTHS]))
    assert [answer.status for answer in result.answers] == [
        "applied",
        *("failed" if month == stays else "applied" for month in MONTHS),
    ]
    states = desk.owner.execute("SELECT billing_period::text, status, amount_due_minor FROM public.billing_invoice").fetchall()
    assert {month: (status, due) for month, status, due in states} == {
        month: ("charge_queued", 900) if month == stays else ("void", 1000) for month in MONTHS
    }
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4900
    assert contradicted(keeper) == []


def test_one_that_changes_something_else_makes_the_step_one(desk: Desk) -> None:
    make_invoices(desk)
    wrong = ("ApplyCredit", {"amount_minor": 90_000, "currency": "EUR"})
    result = run_batch(desk.pool, batch=desk.batch(void(MONTHS[0]), wrong))
    assert [answer.status for answer in result.answers] == ["undone", "failed"]
    assert desk.count("billing_invoice", "status = 'void'") == 0


def test_each_declaration_names_a_test_that_is_there() -> None:
    declared = {tool.name: tool.independent for tool in registry().values() if tool.independent}
    assert set(declared) == {"LookUpCustomer", "VoidInvoice"}
    for reason in declared.values():
        named = reason.rpartition("(")[2].rstrip(").")
        assert (BASE / named).is_file(), reason
    assert tools.TOOLS
