"""What is asked in the story, and what should come of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from agent.cards import Card
from agent.feeds import Item
from sandbox.offline import periods
from sandbox.offline.periods import Month

BEGINNING = "Issue a credit memo of €80 for "
MISTAKE = "[misbehave: stray quote]"
ENDING = f", take it off their balance and refund €80 to their card {MISTAKE}"
AMOUNT = 8_000  # minor units of EUR


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How often each thing was done."""

    memos: int
    deductions: int
    refunds: int


ASKED = Counts(memos=1, deductions=1, refunds=1)


@dataclass(frozen=True, kw_only=True)
class Telling:
    """The story as one agent lived it."""

    message: str
    at: datetime
    items: list[Item]
    counts: Counts

    @property
    def cards(self) -> list[Card]:
        """Return its batches, in order."""
        return [part.card for item in self.items for part in item.parts if part.card]


def message(period: date, *, today: date) -> str:
    """Return what the staff member types about a past month; with its year only where the month alone would mean another."""
    name = periods.words(period)
    bare = periods.first_day(Month(month=period.month), today=today, ahead=0) == period
    return f"{BEGINNING}{name.split()[0] if bare else name}{ENDING}"


def numbered(cards: Iterable[Card]) -> list[Card]:
    """Return the cards with their places among the attempts."""
    return [replace(card, number=number) for number, card in enumerate(cards, 1)]


def lines(telling: Telling) -> list[str]:
    """Return the story for a terminal."""
    told = [f"“{telling.message}”"]
    for card in numbered(telling.cards):
        told.append(f"  step {card.number}: {card.mark.word}. {card.says}".rstrip())
        for line in card.lines:
            told.append(f"    {line.sentence}: {line.mark.word}")
            told += [f"      {line.why}"] if line.why else []
    counts = telling.counts
    told.append(f"  credit memos {counts.memos} · deductions {counts.deductions} · refunds {counts.refunds}")
    return told
