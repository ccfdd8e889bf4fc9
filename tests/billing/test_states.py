"""Every status × every verb: what it becomes, or the sentence that says why not."""

from typing import Any

import pytest

from billing.invoices import Reference
from billing.models import Invoice
from ledger.refusals import Refusal
from tests.billing import makers
from tests.billing.makers import OCTOBER, about
from tests.billing.test_scope import VERBS

DRAFT = "is a draft: it was not paid"
UNDER_WAY = "has a charge under way; wait until the provider has answered"
PAID = "is already paid"
VOID = "is void"
FAILED = "was not paid: its last charge was refused"

# status → verb → the status afterwards, or the refusal
MATRIX = {
    "draft": {"apply": "draft", "issue": "draft", "void": "void", "charge": "charge_queued", "refund": DRAFT},
    "charge_queued": {"apply": UNDER_WAY, "issue": "charge_queued", "void": UNDER_WAY, "charge": UNDER_WAY, "refund": UNDER_WAY},
    "paid": {"apply": PAID, "issue": "paid", "void": PAID, "charge": PAID, "refund": "paid"},
    "charge_failed": {
        "apply": "charge_failed",
        "issue": "charge_failed",
        "void": "void",
        "charge": "charge_queued",
        "refund": FAILED,
    },
    "void": {"apply": VOID, "issue": VOID, "void": VOID, "charge": VOID, "refund": VOID},
}


def test_it_covers_every_status() -> None:
    assert set(MATRIX) == set(Invoice.Status.values)
    assert all(set(row) == set(VERBS) for row in MATRIX.values())


@pytest.mark.parametrize(("status", "verb"), [(status, verb) for status, row in MATRIX.items() for verb in row])
def test_it_moves_or_refuses(owner: Any, agent: Any, customer: int, pipeline: bool, status: str, verb: str) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, billing_period=OCTOBER, status=status)
    if status == "paid":
        makers.make_payment(owner, invoice_id=invoice)
    expected = MATRIX[status][verb]
    named = Reference(customer_id=customer, invoice_id=invoice)
    if expected in Invoice.Status.values:
        with about(agent, customer, pipeline=pipeline) as conn:
            VERBS[verb](conn, named)
    else:
        with (
            pytest.raises(Refusal, match=f"^Invoice {invoice} {expected}\\.$"),
            about(agent, customer, pipeline=pipeline) as conn,
        ):
            VERBS[verb](conn, named)
    after = expected if expected in Invoice.Status.values else status
    assert owner.execute("SELECT status FROM public.billing_invoice").fetchone() == (after,)


@pytest.mark.parametrize("verb", ["apply", "issue", "void", "charge", "refund"])
def test_it_finds_no_void_invoice_by_its_period(owner: Any, agent: Any, customer: int, pipeline: bool, verb: str) -> None:
    makers.make_invoice(owner, customer_id=customer, billing_period=OCTOBER, status="void")
    named = Reference(customer_id=customer, billing_period=OCTOBER)
    with (
        pytest.raises(Refusal, match=r"^There is no invoice for October 2026\.$"),
        about(agent, customer, pipeline=pipeline) as conn,
    ):
        VERBS[verb](conn, named)
