"""Invoices: created, charged, voided, in and out of pipeline mode."""

from typing import Any

import pytest
from psycopg import errors

from billing import invoices
from billing.invoices import Reference
from ledger.refusals import Refusal
from outbox.messages import Cause
from tests.billing import makers
from tests.billing.makers import NOVEMBER, about


def cause(customer: int) -> Cause:
    return Cause(ai_message_id="ai-1", call_index=2, subject=customer)


def row(owner: Any, invoice: int) -> tuple[Any, ...]:
    found = owner.execute(
        "SELECT status, amount_minor, amount_due_minor, charge_attempt, paid_at IS NOT NULL"
        " FROM public.billing_invoice WHERE id = %s",
        (invoice,),
    ).fetchone()
    assert found
    return tuple(found)


def test_it_creates_a_draft(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    with about(agent, customer, pipeline=pipeline) as conn:
        made = invoices.create(
            conn, customer_id=customer, billing_period=NOVEMBER, amount_minor=48_000, currency="EUR", description="Seats"
        )
    invoice = made.pop("invoice_id")
    assert made == {
        "billing_period": "2026-11-01",
        "status": "draft",
        "amount_minor": 48_000,
        "amount_due_minor": 48_000,
        "currency": "EUR",
    }
    assert row(owner, invoice) == ("draft", 48_000, 48_000, 0, False)


def test_it_creates_one_invoice_a_period(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    makers.make_invoice(owner, customer_id=customer, status="void")
    makers.make_invoice(owner, customer_id=customer)
    with pytest.raises(errors.UniqueViolation) as caught, about(agent, customer, pipeline=pipeline) as conn:
        invoices.create(conn, customer_id=customer, billing_period=NOVEMBER, amount_minor=1, currency="EUR")
    assert caught.value.diag.constraint_name == "billing_invoice_one_per_period"


def test_it_charges_what_is_due(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, due_minor=36_000)
    reference = Reference(customer_id=customer, billing_period=NOVEMBER)
    with about(agent, customer, pipeline=pipeline) as conn:
        queued = invoices.queue_charge(conn, invoice=reference, amount_minor=36_000, currency="EUR", cause=cause(customer))
    assert queued == {
        "invoice_id": invoice,
        "status": "charge_queued",
        "amount_minor": 36_000,
        "currency": "EUR",
        "card_last4": "4242",
    }
    assert row(owner, invoice) == ("charge_queued", 48_000, 36_000, 1, False)


def test_it_promises_the_charge_in_the_same_transaction(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer)
    reference = Reference(customer_id=customer, invoice_id=invoice)
    with about(agent, customer, pipeline=pipeline) as conn:
        invoices.queue_charge(conn, invoice=reference, amount_minor=48_000, currency="EUR", cause=cause(customer))
    message = owner.execute(
        "SELECT topic, aggregate, dedupe_key, subject, ai_message_id, call_index, payload FROM public.outbox_message"
    ).fetchall()
    assert [found[:6] for found in message] == [
        ("payment.charge", f"invoice:{invoice}", f"charge:invoice:{invoice}:1", customer, "ai-1", 2)
    ]
    payload = message[0][6]
    assert (payload["amount_minor"], payload["currency"], payload["customer_id"]) == (48_000, "EUR", customer)
    assert payload["provider_customer_id"].startswith("cus_")
    assert payload["provider_payment_method"].startswith("pm_")


def test_it_counts_the_attempts_of_a_charge(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, status="charge_failed")
    reference = Reference(customer_id=customer, invoice_id=invoice)
    with about(agent, customer, pipeline=pipeline) as conn:
        invoices.queue_charge(conn, invoice=reference, amount_minor=48_000, currency="EUR", cause=cause(customer))
    found = owner.execute("SELECT dedupe_key FROM public.outbox_message").fetchall()
    assert found == [(f"charge:invoice:{invoice}:2",)]


@pytest.mark.parametrize("status", ["draft", "charge_failed"])
def test_it_pays_at_once_when_nothing_is_due(owner: Any, agent: Any, pipeline: bool, status: str) -> None:
    customer = makers.make_customer(owner, card=False)
    invoice = makers.make_invoice(owner, customer_id=customer, due_minor=0, status=status)
    reference = Reference(customer_id=customer, invoice_id=invoice)
    with about(agent, customer, pipeline=pipeline) as conn:
        paid = invoices.queue_charge(conn, invoice=reference, amount_minor=0, currency="EUR", cause=cause(customer))
    assert (paid["status"], paid["card_last4"]) == ("paid", None)
    assert row(owner, invoice)[0::4] == ("paid", True)
    assert owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (0,)


@pytest.mark.parametrize(
    ("amount", "currency", "sentence"),
    [
        (30_000, "EUR", r"Invoice \d+ has €480.00 \(48000 minor units\) due, so a charge of €300.00 is not possible"),
        (0, "EUR", r"has €480.00 \(48000 minor units\) due, so a charge of €0.00 is not possible"),
        (48_000, "USD", r"Invoice \d+ is in EUR, so it cannot be charged in USD\."),
        (48_001, "KWD", r"cannot go through a card"),
    ],
)
def test_it_charges_nothing_else(
    owner: Any, agent: Any, customer: int, pipeline: bool, amount: int, currency: str, sentence: str
) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer)
    reference = Reference(customer_id=customer, invoice_id=invoice)
    with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
        invoices.queue_charge(conn, invoice=reference, amount_minor=amount, currency=currency, cause=cause(customer))
    assert row(owner, invoice) == ("draft", 48_000, 48_000, 0, False)


def test_it_needs_a_card(owner: Any, agent: Any, pipeline: bool) -> None:
    customer = makers.make_customer(owner, card=False)
    invoice = makers.make_invoice(owner, customer_id=customer)
    reference = Reference(customer_id=customer, invoice_id=invoice)
    with pytest.raises(Refusal, match="has no card on file"), about(agent, customer, pipeline=pipeline) as conn:
        invoices.queue_charge(conn, invoice=reference, amount_minor=48_000, currency="EUR", cause=cause(customer))


@pytest.mark.parametrize("status", ["draft", "charge_failed"])
def test_it_voids_and_returns_the_credit(owner: Any, agent: Any, customer: int, pipeline: bool, status: str) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, due_minor=40_000, status=status)
    with about(agent, customer, pipeline=pipeline) as conn:
        voided = invoices.void(conn, invoice=Reference(customer_id=customer, invoice_id=invoice))
    assert voided == {
        "invoice_id": invoice,
        "status": "void",
        "returned_credit_minor": 8_000,
        "credit_balance_minor": 20_000,
        "currency": "EUR",
    }
    entry = owner.execute(
        "SELECT number, amount_minor, balance_after_minor, kind, invoice_id FROM public.billing_credit_entry ORDER BY number"
    ).fetchall()
    assert entry[1:] == [(2, 8_000, 20_000, "returned", invoice)]
    assert row(owner, invoice)[:3] == ("void", 48_000, 48_000)


def test_it_voids_without_an_entry_when_no_credit_was_used(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    makers.make_invoice(owner, customer_id=customer)
    with about(agent, customer, pipeline=pipeline) as conn:
        voided = invoices.void(conn, invoice=Reference(customer_id=customer, billing_period=NOVEMBER))
    assert (voided["returned_credit_minor"], voided["credit_balance_minor"]) == (0, 12_000)
    assert owner.execute("SELECT count(*) FROM public.billing_credit_entry").fetchone() == (1,)


def test_it_does_not_void_what_has_credit_memos(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer)
    owner.execute("UPDATE public.billing_invoice SET credited_minor = 1000")
    with pytest.raises(Refusal, match=r"has credit memos of €10\.00"), about(agent, customer, pipeline=pipeline) as conn:
        invoices.void(conn, invoice=Reference(customer_id=customer, invoice_id=invoice))


def test_it_creates_again_after_a_void_in_one_transaction(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    first = makers.make_invoice(owner, customer_id=customer)
    reference = Reference(customer_id=customer, billing_period=NOVEMBER)
    with about(agent, customer, pipeline=pipeline) as conn:
        invoices.void(conn, invoice=reference)
        made = invoices.create(conn, customer_id=customer, billing_period=NOVEMBER, amount_minor=50_000, currency="EUR")
        found = invoices.find(conn, invoice=reference)
    assert found and found["id"] == made["invoice_id"] != first
