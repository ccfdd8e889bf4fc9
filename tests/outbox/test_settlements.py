"""What a final outcome does to the books: once, however often it comes, and never from a state that does not fit."""

from typing import Any

import psycopg
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
    return {
        "refund_id": row[0],
        "payment_id": payment,
        "invoice_id": invoice,
        "customer_id": customer,
        "currency": "EUR",
        "amount_minor": 1_000,
    }


def count(owner: Any, table: str) -> int:
    return int(owner.execute(f"SELECT count(*) FROM public.{table}").fetchone()[0])


def one(owner: Any, query: str, *values: Any) -> Any:
    return owner.execute(query, values).fetchone()


def test_it_pays_an_invoice_once(owner: Any, outbox: Any, customer: int) -> None:
    charge = charge_of(owner, customer)
    for _ in range(3):
        with makers.about(outbox, customer) as conn:
            settlements.charge_succeeded(conn, charge=charge, attempt=1, provider_payment_id="pi_1")

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


def paid_late(owner: Any, outbox: Any, customer: int, charge: dict[str, Any], *, attempt: int = 1) -> str | None:
    with makers.about(outbox, customer) as conn:
        return settlements.charge_succeeded(conn, charge=charge, attempt=attempt, provider_payment_id="pi_1")


@pytest.mark.parametrize("status", ["draft", "charge_failed"])
def test_it_pays_late_what_is_still_owed(owner: Any, outbox: Any, customer: int, status: str) -> None:
    charge = charge_of(owner, customer, status=status)

    assert paid_late(owner, outbox, customer, charge) is None

    assert one(owner, "SELECT status FROM public.billing_invoice") == ("paid",)
    assert one(owner, "SELECT stray FROM public.billing_payment") == (False,)


STRAY = {
    "void": "is void",
    "paid": "is paid already",
    "charge_queued": "is being charged again",
    "charge_failed": "has €479.99 due by now",
    "draft": "has €479.99 due by now",
}


@pytest.mark.parametrize("status", STRAY)
def test_it_keeps_money_that_nobody_owes_apart(owner: Any, outbox: Any, customer: int, status: str) -> None:
    charge = charge_of(owner, customer, status=status)
    if status in ("charge_failed", "draft"):
        owner.execute("UPDATE public.billing_invoice SET amount_due_minor = amount_due_minor - 1")
    expected = f"€480.00 was taken, but invoice {charge['invoice_id']} {STRAY[status]}"

    concern = paid_late(owner, outbox, customer, charge, attempt=0)

    assert concern and concern.startswith(expected)
    assert paid_late(owner, outbox, customer, charge, attempt=0) is None
    assert one(owner, "SELECT status FROM public.billing_invoice") == (status,)
    assert one(owner, "SELECT stray, amount_minor FROM public.billing_payment") == (True, 48_000)


def test_it_pays_no_invoice_that_is_not_there(owner: Any, outbox: Any, customer: int) -> None:
    charge = charge_of(owner, customer) | {"invoice_id": 0}

    with pytest.raises(BooksDisagree):
        paid_late(owner, outbox, customer, charge)
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


def reversed_refund(owner: Any, outbox: Any, customer: int) -> tuple[dict[str, Any], list[str | None]]:
    refund = refund_of(owner, customer)
    with makers.about(outbox, customer) as conn:
        settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1")
    said = []
    for _ in range(2):
        with makers.about(outbox, customer) as conn:
            said.append(settlements.refund_reversed(conn, refund=refund, reason="expired_or_canceled_card"))
    return refund, said


def test_it_enters_once_that_a_confirmed_refund_came_back(owner: Any, outbox: Any, customer: int) -> None:
    refund, said = reversed_refund(owner, outbox, customer)

    why = "but failed afterwards (expired or canceled card): the customer has not got it."
    assert said == [f"The refund of €10.00 was confirmed, {why}", None]
    assert one(owner, "SELECT status FROM public.billing_refund") == ("reversed",)
    assert one(owner, "SELECT refunded_minor FROM public.billing_payment") == (0,)
    assert one(owner, "SELECT refund_id, amount_minor FROM public.billing_refund_reversal") == (refund["refund_id"], 1_000)


@pytest.mark.parametrize("statement", ["UPDATE {} SET amount_minor = 1", "DELETE FROM {}", "TRUNCATE {}"])
def test_it_never_changes_a_reversal(owner: Any, outbox: Any, customer: int, statement: str) -> None:
    reversed_refund(owner, outbox, customer)
    with pytest.raises(psycopg.Error, match="append-only"):
        owner.execute(statement.format("public.billing_refund_reversal"))


def test_it_reverses_no_refund_that_was_not_confirmed(owner: Any, outbox: Any, customer: int) -> None:
    refund = refund_of(owner, customer)
    with pytest.raises(BooksDisagree), makers.about(outbox, customer) as conn:
        settlements.refund_reversed(conn, refund=refund, reason="any")
    assert count(owner, "billing_refund_reversal") == 0


def refused_refund(owner: Any, outbox: Any, customer: int) -> dict[str, Any]:
    refund = refund_of(owner, customer)
    with makers.about(outbox, customer) as conn:
        settlements.refund_rejected(conn, refund=refund, provider_refund_id=None)
    return refund


def test_it_reserves_again_what_went_out_after_all(owner: Any, outbox: Any, customer: int) -> None:
    refund = refused_refund(owner, outbox, customer)

    with makers.about(outbox, customer) as conn:
        assert settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1") is None

    assert one(owner, "SELECT status, provider_refund_id FROM public.billing_refund") == ("confirmed", "re_1")
    assert one(owner, "SELECT refunded_minor FROM public.billing_payment") == (1_000,)


@pytest.mark.parametrize(
    ("other", "said"), [(500, "It went out after all, and €5.00 of the payment was refunded besides."), (64_000, None)]
)
def test_it_says_what_else_was_refunded_and_waits_for_what_another_refund_holds(
    owner: Any, outbox: Any, customer: int, other: int, said: str | None
) -> None:
    refund = refused_refund(owner, outbox, customer)
    owner.execute(
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
        " VALUES (%s, %s, 'EUR', %s, 'r')",
        (customer, refund["payment_id"], other),
    )
    owner.execute("UPDATE public.billing_payment SET refunded_minor = %s", (other,))

    with makers.about(outbox, customer) as conn:
        if said:
            assert settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1") == said
            return
        with pytest.raises(BooksDisagree, match="less left"):
            settlements.refund_succeeded(conn, refund=refund, provider_refund_id="re_1")
