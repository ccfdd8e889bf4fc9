"""Time, which passes in jumps: the provider's clock goes forward, and everything in our rows has happened that much earlier."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import Connection, sql

from sandbox.demo.provider import Provider

TOGETHER = 600.0  # seconds: waits below that end in one jump
# What still may happen to a row: its times count.
LIVING = {
    "outbox_message": "state NOT IN ('succeeded', 'rejected', 'cancelled')",
    "outbox_webhook_event": "processed_at IS NULL",
    "outbox_destination": "true",
}
TIMES = """
SELECT table_name, array_agg(column_name::text) FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = ANY(%s) AND data_type = 'timestamp with time zone' GROUP BY table_name
"""
# When each unsettled message is due that waits for nothing but its time, and each event.
WAITS = """
SELECT extract(epoch FROM greatest(m.next_attempt_at, d.parked_until) - now())::float FROM public.outbox_message m
LEFT JOIN public.outbox_destination d ON d.name = m.destination
WHERE m.state IN ('ready', 'uncertain', 'accepted') AND NOT EXISTS (
    SELECT FROM public.outbox_message older WHERE older.aggregate = m.aggregate AND older.id < m.id
    AND older.state IN ('ready', 'leased', 'uncertain', 'accepted', 'dead'))
UNION ALL
SELECT extract(epoch FROM received_at + make_interval(secs => 5 * attempts * attempts) - now())::float
FROM public.outbox_webhook_event WHERE processed_at IS NULL
"""
LEASED = "SELECT count(*) FROM public.outbox_message WHERE state = 'leased'"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How things stand: messages in somebody's hands, what is due, and how long (seconds) everything else waits."""

    leased: int
    due: int
    waits: list[float]

    @property
    def busy(self) -> bool:
        """Say whether workers have something to do without any jump."""
        return bool(self.leased or self.due)


class Clock:
    """The one place where time passes."""

    def __init__(self, conn: Connection[Any], provider: Provider) -> None:
        self._conn, self._provider = conn, provider
        self.jumps, self.seconds = 0, 0

    def look(self) -> Look:
        """Return how things stand."""
        waits = [row[0] for row in self._conn.execute(WAITS).fetchall()]
        leased = self._conn.execute(LEASED).fetchone()
        return Look(
            leased=leased[0] if leased else 0, due=sum(wait <= 0 for wait in waits), waits=[wait for wait in waits if wait > 0]
        )

    def jump_to_next(self) -> None:
        """Let the time pass until the next thing is due, and with it what is due soon after; nothing if somebody is at work."""
        with self._standing_still():
            look = self.look()
            if not look.busy and look.waits:
                soon = [wait for wait in look.waits if wait <= TOGETHER]
                self._jump(int(max(soon, default=min(look.waits))) + 1)

    def jump(self, seconds: int) -> None:
        """Let that much time pass, if nobody is at work."""
        with self._standing_still():
            if not self.look().leased:
                self._jump(seconds)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Keep every worker from taking anything up: both clocks must move as one."""
        with self._conn.transaction():
            self._conn.execute("LOCK TABLE public.outbox_message, public.outbox_webhook_event IN EXCLUSIVE MODE")
            yield

    def _jump(self, seconds: int) -> None:
        self._provider.control("POST", "clock", {"advance": seconds})
        for table, columns in self._conn.execute(TIMES, ([*LIVING],)).fetchall():
            moved = sql.SQL(", ").join(
                sql.SQL("{0} = {0} - {1}").format(sql.Identifier(column), sql.Literal(timedelta(seconds=seconds)))
                for column in columns
            )
            self._conn.execute(
                sql.SQL("UPDATE public.{} SET {} WHERE {}").format(sql.Identifier(table), moved, sql.SQL(LIVING[table]))
            )
        self.jumps, self.seconds = self.jumps + 1, self.seconds + seconds
