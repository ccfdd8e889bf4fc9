"""Customers, invoices and payments as tests need them, made by the owner; and a connection about one customer."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import psycopg

from billing import customers
from billing.customers import Card

Connection = psycopg.Connection[Any]
numbers = itertools.count(1)
NOVEMBER = date(2026, 11, 1)
OCTOBER = date(2026, 10, 1)


def make_customer(
    owner: Connection, *, name: str = "Sample Cycles BV", currency: str = "EUR", credit_minor: int = 0, card: bool = True
) -> int:
    """Return the id of a new customer with a credit balance in minor units, and a card unless told otherwise."""
    number = next(numbers)
    at_provider = Card(provider_customer_id=f"cus_test{number}", provider_payment_method=f"pm_test{number}", card_last4="4242")
    return customers.create(
        owner,
        name=name,
        email=f"accounts{number}@example.test",
        currency=currency,
        opening_minor=credit_minor,
        card=at_provider if card else Card(),
    )


def make_invoice(
    owner: Connection,
    *,
    customer_id: int,
    billing_period: date = NOVEMBER,
    amount_minor: int = 48_000,
    due_minor: int | None = None,
    status: str = "draft",
    description: str = "",
) -> int:
    """Return the id of a new invoice in any status; `due_minor` below the amount only for what a test says about it."""
    row = owner.execute(
        "INSERT INTO public.billing_invoice (customer_id, billing_period, description, currency, amount_minor, amount_due_minor,"
        " status, charge_attempt, paid_at)"
        " SELECT id, %(period)s, %(description)s, currency, %(amount)s, %(due)s, %(status)s::text,"
        " CASE WHEN %(status)s::text IN ('draft', 'void') THEN 0 ELSE 1 END, CASE WHEN %(status)s::text = 'paid' THEN now() END"
        " FROM public.billing_customer WHERE id = %(customer)s RETURNING id",
        {
            "customer": customer_id,
            "period": billing_period,
            "description": description,
            "amount": amount_minor,
            "due": amount_minor if due_minor is None else due_minor,
            "status": status,
        },
    ).fetchone()
    assert row
    return int(row[0])


def make_payment(
    owner: Connection, *, invoice_id: int, refunded_minor: int = 0, provider_payment_id: str = "", stray: bool = False
) -> int:
    """Return the id of a payment of everything that was due of the invoice; a stray one pays nothing."""
    row = owner.execute(
        "INSERT INTO public.billing_payment"
        " (customer_id, invoice_id, currency, amount_minor, refunded_minor, provider_payment_id, stray)"
        " SELECT customer_id, id, currency, amount_due_minor, %s, %s, %s FROM public.billing_invoice WHERE id = %s RETURNING id",
        (refunded_minor, provider_payment_id or f"pi_test{next(numbers)}", stray, invoice_id),
    ).fetchone()
    assert row
    return int(row[0])


def make_paid_invoice(
    owner: Connection,
    *,
    customer_id: int,
    billing_period: date = OCTOBER,
    amount_minor: int = 64_000,
    refunded_minor: int = 0,
    provider_payment_id: str = "",
) -> tuple[int, int]:
    """Return the ids of a paid invoice and of the payment that paid it by card."""
    invoice = make_invoice(
        owner, customer_id=customer_id, billing_period=billing_period, amount_minor=amount_minor, status="paid"
    )
    payment = make_payment(owner, invoice_id=invoice, refunded_minor=refunded_minor, provider_payment_id=provider_payment_id)
    return invoice, payment


@contextmanager
def about(conn: Connection, customer_id: int, *, pipeline: bool = False) -> Iterator[Connection]:
    """Open a transaction whose subject is the customer, in pipeline mode if asked; everything late is checked at its end."""
    with conn.transaction():
        conn.execute("SELECT set_config('backstop.subject', %s, true)", (str(customer_id),))
        if not pipeline:
            yield conn
        else:
            with conn.pipeline():
                yield conn
        conn.execute("SET CONSTRAINTS ALL IMMEDIATE")
