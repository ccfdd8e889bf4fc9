"""Whom the conversations are about: customers of this run alone, with cards that pay, refuse, or take their time."""

from datetime import date
from random import Random
from typing import Any

from psycopg import Connection

from sandbox.chaos.words import MONTHS, SIGNS, About
from sandbox.demo import books
from sandbox.demo.cast import DemoCustomer, draft, paid
from sandbox.demo.provider import Provider

CARDS = (
    (12, "pm_card_visa"),
    (2, "pm_card_sandboxProcessing"),
    (2, "pm_card_pendingRefund"),
    (2, "pm_card_visa_chargeDeclinedInsufficientFunds"),
    (1, "pm_card_sandboxProcessingFails"),
    (1, "pm_card_refundFail"),
)
PAY_LATER = ("pm_card_pendingRefund", "pm_card_refundFail")  # cards whose payments succeed, unlike their refunds
PAID = (2, 1)  # months ago


def members(*, seed: int, count: int) -> tuple[DemoCustomer, ...]:
    """Return the customers of a seed."""
    dice = Random(f"{seed}:cast")  # noqa: S311 - a plan that can be had again, not a secret
    return tuple(_member(dice, name=f"Chaos {seed}-{number}") for number in range(1, count + 1))


def _member(dice: Random, *, name: str) -> DemoCustomer:
    card = dice.choices([card for _, card in CARDS], [weight for weight, _ in CARDS])[0]
    return DemoCustomer(
        name=name,
        email=f"{name.lower().replace(' ', '-')}@chaos.test",
        currency=dice.choice([*SIGNS]),
        credit_minor=dice.choice((0, 500, 2_000, 40_000)),
        card=card,
        paid_with=card if card in PAY_LATER else "pm_card_visa",
        invoices=(
            *(paid(ago, dice.randint(2_000, 60_000), "Plan") for ago in PAID),
            draft(0, dice.randint(500, 9_000), "Add-on"),
        ),
    )


def about(who: DemoCustomer, *, today: date) -> About:
    """Return what is said about a customer."""
    months = [invoice.billing_period(today) for invoice in who.invoices if invoice.paid]
    return About(currency=who.currency, past=tuple(f"{MONTHS[month.month - 1]} {month.year}" for month in months))


def make(conn: "Connection[Any]", *, cast: tuple[DemoCustomer, ...], provider: Provider, today: date) -> list[int]:
    """Make the customers who are not there yet, as the owner, and return the ids of all; the outbox charges their invoices."""
    for who in cast:
        if not books.known(conn, email=who.email):
            books.make(conn, who=who, provider=provider, today=today)
    ids = dict(conn.execute("SELECT email, id FROM public.billing_customer").fetchall())
    return [ids[who.email] for who in cast]
