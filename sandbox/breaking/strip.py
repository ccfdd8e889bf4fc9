"""The live strip: what must be true, books against provider, what is being put right, and how each part is."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings

from sandbox.breaking import demonstration, healing, lookout
from sandbox.supervisor.records import Record

OLD = 8.0  # seconds after which a look is told with its age
PARTS = {
    "agent": "Agent",
    "outbox": "Outbox",
    "keeper": "Keeper",
    "web": "Web",
    "postgres": "PostgreSQL",
    "valkey": "Broker",
    "stripe": "Stripe sandbox",
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """How one part is: up, starting or down."""

    name: str
    word: str
    restarts: int

    @property
    def state(self) -> str:
        """Return the colour."""
        return {"up": "applied", "starting": "held"}.get(self.word, "failed")

    @property
    def icon(self) -> str:
        """Return the icon."""
        return {"up": "check", "starting": "timer"}.get(self.word, "triangle-alert")


@dataclass(frozen=True, kw_only=True)
class Sum:
    """What books and provider say of one currency, in minor units."""

    currency: str
    books: int
    provider: int

    @property
    def agrees(self) -> bool:
        """Say whether they say the same."""
        return self.books == self.provider


@dataclass(kw_only=True)
class Strip:
    """Everything that the strip shows. `database` says whether PostgreSQL answers this process."""

    database: bool
    parts: list[Part]
    healing: list[str]
    checked: int = 0
    broken: list[dict[str, Any]] = field(default_factory=list)
    at: datetime | None = None
    old: bool = True
    compared: bool = False
    provider_says: str = ""
    differs: list[str] = field(default_factory=list)
    sums: list[Sum] = field(default_factory=list)

    @property
    def state(self) -> str:
        """Return the colour of what must be true."""
        return "queued" if not self.checked else "failed" if self.broken else "held" if self.old else "applied"

    @property
    def provider_state(self) -> str:
        """Return the colour of books against provider."""
        if not self.compared:
            return "held" if self.checked else "queued"
        return "failed" if self.differs else "held" if self.old else "applied"

    @property
    def said(self) -> str:
        """Return what a screen reader hears when it changes: no ages, no seconds."""
        down = [part.name for part in self.parts if part.word != "up"]
        held = "held" if self.old else "hold"
        true = f"{self.checked - len(self.broken)} of {self.checked} {held}." if self.checked else "Not looked yet."
        return f"{true} {', '.join(down)} down." if down else true


def look() -> Strip:
    """Look at everything, and keep the keeper looking."""
    lookout.want()
    try:
        with demonstration.connect() as conn:
            found = Strip(database=True, parts=_parts(database=True), healing=healing.waiting(conn))
    except psycopg.OperationalError:
        found = Strip(database=False, parts=_parts(database=False), healing=[])
    _fill(found, lookout.last())
    return found


def _fill(strip: Strip, seen: dict[str, Any] | None) -> None:
    if seen is None:
        return
    compared = seen["provider"]
    strip.checked, strip.broken, strip.at = seen["checked"], seen["broken"], datetime.fromisoformat(seen["at"])
    strip.old = seen["age"] > OLD or not strip.database
    strip.compared, strip.provider_says, strip.differs = compared["compared"], compared["says"], compared["broken"]
    strip.sums = [Sum(currency=code.upper(), **pair) for code, pair in sorted(compared["sums"].items())]


def _parts(*, database: bool) -> list[Part]:
    restarts = Record.of(settings.DATA_DIR).restarts
    return [
        Part(name=label, word=_word(name, database=database), restarts=restarts.get(name, 0)) for name, label in PARTS.items()
    ]


def _word(name: str, *, database: bool) -> str:
    """Return how a part is; this very process is web."""
    if name == "web":
        return "up"
    works = {
        "postgres": lambda: database,
        "valkey": demonstration.broker_answers,
        "stripe": demonstration.provider_answers,
    }.get(name, lambda: demonstration.works(name))()
    if works:
        return "up"
    return "starting" if demonstration.pid(name) else "down"
