"""What is asked for: customers with cards of every kind, charges of their invoices, and refunds of what was paid."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any, Literal

from psycopg import Connection

from billing import customers, invoices, refunds
from billing.customers import Card
from billing.invoices import Reference
from outbox.messages import Cause
from sandbox.demo.provider import Provider

Conn = Connection[Any]
INVOICES = 10  # of one customer, a month each
FIRST_YEAR = 2020
CURRENCIES = ("EUR", "EUR", "USD", "GBP", "JPY")
CARDS = (
    (16, "pm_card_visa"),
    (2, "pm_card_sandboxProcessing"),
    (2, "pm_card_pendingRefund"),
    (1, "pm_card_visa_chargeDeclinedInsufficientFunds"),
    (1, "pm_card_sandboxProcessingFails"),
    (1, "pm_card_refundFail"),
)
PAID = """
SELECT i.id, i.customer_id, i.currency, p.amount_minor FROM public.billing_invoice i
JOIN public.billing_payment p ON p.customer_id = i.customer_id AND p.invoice_id = i.id
WHERE i.status = 'paid' ORDER BY i.id
"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One movement of money that was asked for: `number` is that of the invoice to charge, or of the refund."""

    kind: Literal["charge", "refund"]
    number: int
    invoice: int
    amount_minor: int
    currency: str


def make_customers(conn: Conn, *, provider: Provider, seed: int, invoices_wanted: int) -> list[tuple[int, str]]:
    """Return id and currency of as many customers as so many invoices need; as the owner."""
    dice = _dice(seed, "customers")
    return [_customer(conn, provider, dice, number) for number in range(1, -(-invoices_wanted // INVOICES) + 1)]


def _customer(conn: Conn, provider: Provider, dice: Random, number: int) -> tuple[int, str]:
    name, email, currency = f"Simulation {number}", f"simulation-{number}@simulation.test", dice.choice(CURRENCIES)
    # The first one pays: a small simulation has something to refund.
    wanted = dice.choices([card for _, card in CARDS], [weight for weight, _ in CARDS])[0] if number > 1 else CARDS[0][1]
    at_provider = provider.customer(name=name, email=email)
    method, last4 = provider.card(wanted, customer=at_provider)
    card = Card(provider_customer_id=at_provider, provider_payment_method=method, card_last4=last4)
    return customers.create(conn, name=name, email=email, currency=currency, card=card), currency


def charges(conn: Conn, *, cast: list[tuple[int, str]], seed: int, wanted: Iterable[int]) -> Iterator[Order]:
    """Make an invoice for each number from 0 and charge it: the customers take turns."""
    for number in wanted:
        customer, currency = cast[number % len(cast)]
        years, month = divmod(number // len(cast), 12)
        amount = _dice(seed, f"charge:{number}").randint(1_000, 90_000)
        with conn.transaction():
            invoice = invoices.create(
                conn,
                customer_id=customer,
                billing_period=date(FIRST_YEAR + years, month + 1, 1),
                amount_minor=amount,
                currency=currency,
            )["invoice_id"]
            invoices.queue_charge(
                conn,
                invoice=Reference(customer_id=customer, invoice_id=invoice),
                amount_minor=amount,
                currency=currency,
                cause=Cause(subject=customer),
            )
        yield Order(kind="charge", number=invoice, invoice=invoice, amount_minor=amount, currency=currency)


def refundable(conn: Conn, *, seed: int, wanted: int) -> list[tuple[int, int, str, int]]:
    """Return invoice, customer, currency and amount (minor units) of so many paid invoices, or of all that there are."""
    found = conn.execute(PAID).fetchall()
    return _dice(seed, "refunds").sample(found, min(wanted, len(found)))


def refund(conn: Conn, paid: tuple[int, int, str, int], *, seed: int) -> Order:
    """Ask for a refund of a paid invoice: of everything, or of a part."""
    invoice, customer, currency, amount = paid
    dice = _dice(seed, f"refund:{invoice}")
    part = amount if dice.random() < 0.4 else dice.randint(200, amount)
    with conn.transaction():
        made = refunds.request(
            conn,
            invoice=Reference(customer_id=customer, invoice_id=invoice),
            amount_minor=part,
            currency=currency,
            reason="a simulated complaint",
            cause=Cause(subject=customer),
        )
    return Order(kind="refund", number=made["refund_id"], invoice=invoice, amount_minor=part, currency=currency)


def _dice(seed: int, what: str) -> Random:
    return Random(f"{seed}:{what}")  # noqa: S311 - a plan that can be had again, not a secret
