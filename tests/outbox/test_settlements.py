"""What a final outcome does to the books: once, however often it comes, and never from a state that does not fit."""

from typing import Any

import pytest

from billing import settlements
from billing.settlements import BooksDisagree
from tests.billing import makers


@pytest.fixture
def customer(owner: Any) -> int:
    """Return a customer."""
    return makers.make_customer(owner)


def charge_of(owner: Any, customer: int, *, status: str = "charge_queued") -> dict[str, Any]:
    invoice = makers.make_invoice(owner, customer_id=customer, status=status)
    return {"invoice_id": invoice, "customer_id": customer, "amount_minor": 48_000, "currency": "EUR"}


def refund_of(owner: Any, customer: int) -> dict[str, Any]:
    invoice, payment = makers.make_paid_invoice(owner, customer_id=customer, refunded_minor=1_000)
    row = owner.execute(
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
        " VALUES (%s, %s, 'EUR', 1000, 'r') RETURNING id",
        (customer, payment),
    ).fetchone()
    return {"refund_id": row[0], "payment_id": payment, "invoice_id": invoice, "customer_id": customer, "amount_minor": 1_000}


def count(owner: Any, table: str) -> int:
    return int(owner.execute(f"SELECT count(*) FROM public.{table}").fetchone()[0])


def one(owner: Any, query: str, *values: Any) -> Any:
    return owner.execute(query, values).fetchone()


def test_it_pays_an_invoice_once(owner: Any, outbox: Any, customer: int) -> None:
    charge = charge_of(owner, customer)
    for _ in range(3):
        with makers.about(outbox, customer) as conn:
            settlements.charge_succeeded(conn, charge=charge, provider_payment_id="pi_1")

    assert count(owner, "billing_payment") == 1
    assert one(owner, "SELECT status, paid_at IS NOT NULL FROM public.billing_invoice") == ("paid", True)


@pytest.mark.parametrize("verb", ["charge_rejected", "charge_withdrawn"])
def test_it_gives_an_invoice_back_once(owner: Any, outbox: Any, customer: int, verb: str) -> None:
    charge = charge_of(owner, customer)
    for _ in range(2):
        with makers.about(outbox, customer) as conn:
            getattr(settlements, verb)(conn, charge=charge)

    expected = {"charge_rejected": "charge_failed", "charge_withdrawn": "draft"}[verb]
    assert one(owner, "SELECT status, paid_at FROM public.billing_invoice") == (expected, None)


@pytest.mark.parametrize("status", ["draft", "charge_failed", "void"])
def test_it_pays_no_invoice_that_is_not_being_charged(owner: Any, outbox: Any, customer: int, status: str) -> None:
    charge = charge_of(owner, customer, status=status)

    with pytest.raises(BooksDisagree), makers.about(outbox, customer) as conn:
        settlements.charge_succeeded(conn, charge=charge, provider_payment_id="pi_1")

    assert count(owner, "billing_payment") == 0


def test_it_sees_no_other_customer(owner: Any, outbox: Any, customer: int) -> None:
    charge = charge_of(owner, customer)
    stranger = makers.make_customer(owner, name="Other")

    with pytest.raises(BooksDisagree), makers.about(outbox, stranger) as conn:
        settlements.charge_rejected(conn, charge=charge)

    assert one(owner, "SELECT status FROM public.billing_invoice") == ("charge_queued",)


def test_it_confirms_a_refund_once(owner: Any, outbox: Any, customer: int) -> None:
    refund = refund_of(owner, customer)
    for _ in range(2):
        with makers.about(outbox, customer) as conn:
            settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1")

    assert one(owner, "SELECT status, provider_refund_id FROM public.billing_refund") == ("confirmed", "re_1")
    assert one(owner, "SELECT refunded_minor FROM public.billing_payment") == (1_000,)


@pytest.mark.parametrize(("verb", "status"), [("refund_rejected", "refused"), ("refund_withdrawn", "withdrawn")])
def test_it_frees_the_amount_of_a_refund_once(owner: Any, outbox: Any, customer: int, verb: str, status: str) -> None:
    refund = refund_of(owner, customer)
    more = {"provider_refund_id": "re_1"} if verb == "refund_rejected" else {}
    for _ in range(2):
        with makers.about(outbox, customer) as conn:
            getattr(settlements, verb)(conn, refund=refund, **more)

    assert one(owner, "SELECT status FROM public.billing_refund") == (status,)
    assert one(owner, "SELECT refunded_minor FROM public.billing_payment") == (0,)


def test_it_refuses_no_refund_that_was_confirmed(owner: Any, outbox: Any, customer: int) -> None:
    refund = refund_of(owner, customer)
    with makers.about(outbox, customer) as conn:
        settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1")

    with pytest.raises(BooksDisagree), makers.about(outbox, customer) as conn:
        settlements.refund_rejected(conn, refund=refund, provider_refund_id="re_1")
