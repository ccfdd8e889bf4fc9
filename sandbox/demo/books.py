"""The demo's customers in our own books: each made once, as a whole; what is paid is charged through the outbox."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from psycopg import Connection

from billing import credit_notes, customers, invoices, money
from billing.customers import NO_CARD, Card
from billing.invoices import Reference
from outbox.messages import Cause
from sandbox.demo.cast import DemoCustomer, DemoInvoice
from sandbox.demo.provider import Provider

Conn = Connection[Any]
UNBILLED = """
SELECT p.provider_payment_id, c.provider_customer_id, p.amount_minor, p.currency FROM public.billing_payment p
JOIN public.billing_customer c ON c.id = p.customer_id JOIN public.billing_invoice i ON i.id = p.invoice_id
WHERE c.email = %s AND i.description = %s AND p.provider_invoice_id IS NULL AND NOT p.stray
"""


def known(conn: Conn, *, email: str) -> bool:
    """Return whether the customer is there already."""
    return conn.execute("SELECT 1 FROM public.billing_customer WHERE email = %s", (email,)).fetchone() is not None


def make(conn: Conn, *, who: DemoCustomer, provider: Provider | None, today: date) -> list[int]:
    """Make a customer in one transaction and return the ids of the invoices whose charge is queued.

    Without a provider the customer has no card, and only invoices that nobody has charged.
    """
    on_file, paid_with = _cards(who, provider)
    with conn.transaction():
        customer = customers.create(
            conn,
            name=who.name,
            email=who.email,
            currency=who.currency,
            opening_minor=who.credit_minor,
            terms_days=who.terms_days,
            card=paid_with,
        )
        queued = [_invoice(conn, customer, who, invoice, today) for invoice in who.invoices if provider or not invoice.paid]
        _put_on_file(conn, customer, on_file)
        return [invoice for invoice in queued if invoice is not None]


def date_payments(conn: Conn, *, invoices: Sequence[int]) -> int:
    """Move the payments of these invoices to two days after the invoice, and return how many there are."""
    with conn.transaction():
        conn.execute(
            "UPDATE public.billing_payment p SET paid_at = i.created_at + interval '2 days' FROM public.billing_invoice i"
            " WHERE i.customer_id = p.customer_id AND i.id = p.invoice_id AND i.id = ANY(%s)",
            (list(invoices),),
        )
        return conn.execute(
            "UPDATE public.billing_invoice SET paid_at = created_at + interval '2 days' WHERE id = ANY(%s) AND status = 'paid'",
            (list(invoices),),
        ).rowcount


def bill(conn: Conn, *, cast: Sequence[DemoCustomer], provider: Provider) -> None:
    """Have payments that are made by now pay invoices at the provider too, where the cast says so; each once."""
    wanted = [(who.email, invoice.description) for who in cast for invoice in who.invoices if invoice.at_provider]
    for email, description in wanted:
        found = conn.execute(UNBILLED, (email, description)).fetchone()
        if found is not None:
            intent, customer, minor, currency = found
            amount, code = money.to_provider(minor, currency)
            about = {"customer": customer, "currency": code, "description": description}
            made = provider.invoice(about, intent=intent, amount=amount)
            with conn.transaction():
                credit_notes.link(conn, provider_payment_id=intent, provider_invoice_id=made)


def _cards(who: DemoCustomer, provider: Provider | None) -> tuple[Card, Card]:
    """Return the card that is on file and the one that paid, made at the provider."""
    if provider is None:
        return NO_CARD, NO_CARD
    customer = provider.customer(name=who.name, email=who.email)
    paid_with = who.paid_with if any(invoice.paid for invoice in who.invoices) else who.card
    return _card(provider, customer, who.card), _card(provider, customer, paid_with)


def _card(provider: Provider, customer: str, test_card: str | None) -> Card:
    if test_card is None:
        return Card(provider_customer_id=customer)
    method, last4 = provider.card(test_card, customer=customer)
    return Card(provider_customer_id=customer, provider_payment_method=method, card_last4=last4)


def _invoice(conn: Conn, customer: int, who: DemoCustomer, invoice: DemoInvoice, today: date) -> int | None:
    """Make an invoice as of its month, queue its charge if it is paid, and then return its id."""
    period = invoice.billing_period(today)
    made = invoices.create(
        conn,
        customer_id=customer,
        billing_period=period,
        amount_minor=invoice.amount_minor,
        currency=who.currency,
        description=invoice.description,
    )
    conn.execute(
        "UPDATE public.billing_invoice SET created_at = least(billing_period + interval '9 hours', now()) WHERE id = %s",
        (made["invoice_id"],),
    )
    if not invoice.paid:
        return None
    invoices.queue_charge(
        conn,
        invoice=Reference(customer_id=customer, invoice_id=made["invoice_id"]),
        amount_minor=invoice.amount_minor,
        currency=who.currency,
        cause=Cause(subject=customer),
    )
    return int(made["invoice_id"])


def _put_on_file(conn: Conn, customer: int, card: Card) -> None:
    """Replace the card that paid by the one that is on file now, for a customer of a year."""
    conn.execute(
        "UPDATE public.billing_customer SET provider_payment_method = %s, card_last4 = %s, created_at = now() - interval '1 year'"
        " WHERE id = %s",
        (card.provider_payment_method, card.card_last4, customer),
    )
