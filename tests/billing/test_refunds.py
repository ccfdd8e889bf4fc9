"""Refunds: reserved on the payment, capped by the database, queued with their cause."""

from typing import Any

import pytest
from psycopg import errors

from billing import refunds
from billing.invoices import Reference
from ledger.refusals import Refusal
from outbox.messages import Cause
from tests.billing import makers
from tests.billing.makers import OCTOBER, about


def request(conn: Any, customer: int, *, amount: int = 32_000, currency: str = "EUR", **reference: Any) -> dict[str, Any]:
    return refunds.request(
        conn,
        invoice=Reference(customer_id=customer, **(reference or {"billing_period": OCTOBER})),
        amount_minor=amount,
        currency=currency,
        reason="Doubled seats",
        cause=Cause(ai_message_id="ai-1", call_index=0, subject=customer),
    )


def test_it_reserves_the_amount_on_the_payment(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice, payment = makers.make_paid_invoice(owner, customer_id=customer)
    with about(agent, customer, pipeline=pipeline) as conn:
        asked = request(conn, customer)
    refund = asked.pop("refund_id")
    assert asked == {
        "invoice_id": invoice,
        "status": "queued",
        "amount_minor": 32_000,
        "refundable_minor": 32_000,
        "currency": "EUR",
        "card_last4": "4242",
    }
    assert owner.execute("SELECT refunded_minor FROM public.billing_payment").fetchone() == (32_000,)
    assert owner.execute("SELECT id, payment_id, amount_minor, status, reason FROM public.billing_refund").fetchall() == [
        (refund, payment, 32_000, "queued", "Doubled seats")
    ]


def test_it_promises_the_refund_in_the_same_transaction(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice, payment = makers.make_paid_invoice(owner, customer_id=customer, provider_payment_id="pi_1")
    with about(agent, customer, pipeline=pipeline) as conn:
        refund = request(conn, customer, invoice_id=invoice)["refund_id"]
    found = owner.execute("SELECT topic, aggregate, dedupe_key, subject, payload FROM public.outbox_message").fetchall()
    assert [message[:4] for message in found] == [("payment.refund", f"payment:{payment}", f"refund:{refund}:1", customer)]
    assert found[0][4] == {
        "refund_id": refund,
        "payment_id": payment,
        "invoice_id": invoice,
        "customer_id": customer,
        "amount_minor": 32_000,
        "currency": "EUR",
        "provider_payment_id": "pi_1",
        "card_last4": "4242",
    }


def test_it_refunds_what_paid_an_invoice_and_no_stray_payment(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice, paid = makers.make_paid_invoice(owner, customer_id=customer)
    stray = makers.make_payment(owner, invoice_id=invoice, stray=True)
    with about(agent, customer, pipeline=pipeline) as conn:
        request(conn, customer)
    found = owner.execute("SELECT id, refunded_minor FROM public.billing_payment ORDER BY id").fetchall()
    assert found == [(paid, 32_000), (stray, 0)]


@pytest.mark.parametrize(
    ("amount", "currency", "constraint"),
    [(44_001, "EUR", "billing_payment_refund_cap"), (100, "USD", "billing_refund_customer_currency")],
)
def test_it_leaves_the_verdict_to_the_database(
    owner: Any, agent: Any, customer: int, pipeline: bool, amount: int, currency: str, constraint: str
) -> None:
    makers.make_paid_invoice(owner, customer_id=customer, refunded_minor=20_000)
    with pytest.raises(errors.IntegrityError) as caught, about(agent, customer, pipeline=pipeline) as conn:
        request(conn, customer, amount=amount, currency=currency)
    assert caught.value.diag.constraint_name == constraint
    assert owner.execute("SELECT refunded_minor FROM public.billing_payment").fetchone() == (20_000,)


def test_it_has_one_refund_of_a_payment_under_way(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    makers.make_paid_invoice(owner, customer_id=customer)
    with about(agent, customer, pipeline=pipeline) as conn:
        request(conn, customer, amount=100)
    with pytest.raises(errors.UniqueViolation) as caught, about(agent, customer, pipeline=pipeline) as conn:
        request(conn, customer, amount=100)
    assert caught.value.diag.constraint_name == "billing_refund_one_in_flight"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("draft", r"Invoice \d+ is a draft: it was not paid\."),
        ("charge_queued", r"has a charge under way"),
        ("charge_failed", r"was not paid: its last charge was refused"),
        ("void", r"is void"),
        ("paid", r"was paid without a card, so there is no payment to refund"),
    ],
)
def test_it_refunds_only_what_a_card_paid(
    owner: Any, agent: Any, customer: int, pipeline: bool, status: str, sentence: str
) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, status=status)
    with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
        request(conn, customer, invoice_id=invoice)


def test_it_refuses_what_the_provider_cannot_move(owner: Any, agent: Any) -> None:
    customer = makers.make_customer(owner, currency="KWD")
    makers.make_paid_invoice(owner, customer_id=customer)
    with pytest.raises(Refusal, match="the last decimal of KWD must be 0"), about(agent, customer) as conn:
        request(conn, customer, amount=5_124, currency="KWD")
