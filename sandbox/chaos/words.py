"""What staff say: the offline model's published requests with free amounts and months, some of them with a mistake on demand."""

from dataclasses import dataclass
from random import Random

SIGNS = {"EUR": "€", "GBP": "£", "USD": "$", "JPY": "¥"}
WHOLE = ("JPY",)  # currencies without a smaller unit
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# How often, and what. {past} has a payment, {month} may have an invoice of this run by now or not.
REQUESTS = (
    (5, "Invoice {month} for {amount} and charge it to the card."),
    (5, "Issue a credit memo of {little} for {past} because of the outage. Invoice {month} for {amount}, use {little} of their"
        " credit and charge the rest."),
    (3, "Create an invoice for {month} of {amount}."),
    (2, "Invoice {month} and {other} at {amount} each."),
    (3, "Invoice {month} for {amount}, use their {little} credit and charge the rest."),
    (2, "Use {little} of credit on the {month} invoice and charge the rest."),
    (2, "Charge the {month} invoice."),
    (1, "Use all their credit on {month}."),
    (1, "Deduct {little} from their credit balance."),
    (2, "Issue a credit memo of {little} for {past} because of the outage."),
    (2, "Void the {month} invoice."),
    (1, "Void the {month} invoice and reissue it at {amount}."),
    (6, "Refund {little} of the {past} payment."),
    (4, "Issue a credit memo of {little} for {past}, take it off their balance and refund {little} to their card."),
    (1, "Move {little} of credit from {month} to {other}."),
    (1, "Retry the refused charge."),
    (1, "Ask a person whether the setup fee may be waived."),
    (1, "How much credit do they have left?"),
    (1, "Which invoices are still open?"),
    (1, "What did you do?"),
)  # fmt: skip
HELD = "Invoice {month} for {large} and charge it to the card."
MISTAKES = (
    "stray quote",
    "wrong customer",
    "negative amount",
    "bad date",
    "unknown tool",
    "truncated",
    "same id",
    "stubborn",
    "slow",
)


@dataclass(frozen=True, kw_only=True)
class About:
    """Whom a conversation is about: the currency and two months that have been paid."""

    currency: str
    past: tuple[str, ...]


def request(dice: Random, *, about: About) -> str:
    """Return what somebody asks for."""
    roll = dice.random()
    if roll < 0.15:
        return filled(HELD, dice, about=about)
    text = filled(dice.choices([text for _, text in REQUESTS], [weight for weight, _ in REQUESTS])[0], dice, about=about)
    if roll < 0.18:
        return f"{text} [misbehave: loop]"
    return f"{text} [misbehave: {dice.choice(MISTAKES)}]" if roll < 0.35 else text


def filled(text: str, dice: Random, *, about: About) -> str:
    """Return a request with its amounts and months. The years are far from now, so that they are only ours."""
    months = [f"{dice.choice(MONTHS)} {dice.randint(2031, 2033)}" for _ in range(2)]
    currency = dice.choice([*SIGNS]) if dice.random() < 0.04 else about.currency
    return text.format(
        month=months[0],
        other=months[1],
        past=dice.choice(about.past),
        amount=money(dice.randint(200, 90_000), currency),
        little=money(dice.randint(10, 900), currency),
        large=money(dice.randint(500_001, 900_000), currency),
    )


def money(minor: int, currency: str) -> str:
    """Return an amount as people write it."""
    return SIGNS[currency] + (str(minor) if currency in WHOLE else f"{minor / 100:.2f}")
