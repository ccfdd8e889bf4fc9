"""How fast messages leave for each destination: set by an admin, else by the installation. Rows of it are only ever added.

A claim reads a destination's own row; a trigger writes what an admin sets into it, in the same transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from ledger import people
from outbox import handlers
from outbox.models import Destination, Rate

FASTEST, MOST_AT_ONCE = 60_000, 1_000  # messages a minute, and messages, as the constraint has it
HISTORY = 20
# Two admins who set the same at once both think that they changed something; the second is told that he did not. A worker that
# starts just then must not write the installation's rate over it.
LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox_rate ' || %s, 0))"
NOW = "SELECT rate, burst FROM public.outbox_destination WHERE name = %s"
SET = "INSERT INTO public.outbox_rate (destination, rate, burst, reason, set_by) VALUES (%s, %s, %s, %s, %s)"
KEEP = """
INSERT INTO public.outbox_destination AS d (name, rate, burst)
SELECT %(name)s, %(rate)s, %(burst)s WHERE NOT EXISTS (SELECT FROM public.outbox_rate WHERE destination = %(name)s)
ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, burst = excluded.burst
WHERE (d.rate, d.burst) IS DISTINCT FROM (excluded.rate, excluded.burst)
"""


class NothingChanges(Exception):
    """That is what counts already."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How many messages may leave for a destination."""

    destination: str
    rate: int | None  # messages a minute; None: as many as there are
    burst: int = 1
    by: str = ""
    row: Rate | None = None  # None: nobody has set it on the page

    @property
    def words(self) -> str:
        """Return how many, in words."""
        return words(self.rate, self.burst)


def words(rate: int | None, burst: int) -> str:
    """Return a rate in words, such as "1,200 a minute, 40 at once"."""
    return f"{rate:,} a minute, {burst:,} at once" if rate else "as fast as it answers"


def current() -> list[Speed]:
    """Return what counts now for each destination."""
    newest = {row.destination: row for row in Rate.objects.order_by("destination", "-id").distinct("destination")}
    known = {row.name: row for row in Destination.objects.all()}
    people_by_id = people.names(row.set_by for row in newest.values())
    return [_speed(name, newest.get(name) or known.get(name), people_by_id) for name in handlers.destinations()]


def history() -> list[Speed]:
    """Return what was set, newest first."""
    rows = list(Rate.objects.order_by("-id")[:HISTORY])
    people_by_id = people.names(row.set_by for row in rows)
    return [_speed(row.destination, row, people_by_id) for row in rows]


def set_rate(conn: Connection[Any], *, destination: str, rate: int | None, burst: int, reason: str, user: int) -> None:
    """Let so many messages a minute leave from now on, `burst` at once after a rest; None lets them all. Raise NothingChanges."""
    conn.execute(LOCK, (destination,))
    row = conn.execute(NOW, (destination,)).fetchone()
    if (row or (None, 1)) == (rate, burst):
        raise NothingChanges
    conn.execute(SET, (destination, rate, burst, reason, user))


def keep(conn: Connection[Any], *, rates: Mapping[str, tuple[int, int]]) -> None:
    """Hold each destination that no admin has set a rate for to that of the installation, or to none; see BACKSTOP_RATES."""
    for name in {*handlers.destinations(), *rates}:
        rate, burst = rates.get(name, (None, 1))
        with conn.transaction():
            conn.execute(LOCK, (name,))
            conn.execute(KEEP, {"name": name, "rate": rate, "burst": burst})


def _speed(name: str, row: Rate | Destination | None, people_by_id: dict[int, str]) -> Speed:
    if row is None:
        return Speed(destination=name, rate=None)
    if isinstance(row, Destination):
        return Speed(destination=name, rate=row.rate, burst=row.burst)
    by = people_by_id.get(row.set_by, f"user {row.set_by}")
    return Speed(destination=name, rate=row.rate, burst=row.burst, by=by, row=row)
