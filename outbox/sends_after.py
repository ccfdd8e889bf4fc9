"""The time in which a topic's messages can be taken back: set by an admin, used by staff. Rows of it are only ever added.

`messages.enqueue` reads the newest row itself. What waits is an ordinary message that is not due; taking it back is an ordinary
request to withdraw it, which the outbox worker carries out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from psycopg import Connection

from ledger import people
from outbox import handlers, requests
from outbox.models import Message, Request, SendAfter

LONGEST = 3600  # seconds, as the constraint has it
REASON = "Undone before it was sent."
HISTORY = 20
# Two admins who set the same at once both think that they changed something; the second is told that he did not.
LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox_send_after ' || %s, 0))"
NOW = "SELECT seconds FROM public.outbox_send_after WHERE topic = %s ORDER BY id DESC LIMIT 1"
SET = "INSERT INTO public.outbox_send_after (topic, seconds, reason, set_by) VALUES (%s, %s, %s, %s)"
IN_TIME = "SELECT state = 'ready' AND undo_until > now() FROM public.outbox_message WHERE id = %s"
ASKED = "SELECT FROM public.outbox_request WHERE message_id = %s AND kind = 'cancel' AND (carried_out_at IS NULL OR outcome = %s)"


class NothingChanges(Exception):
    """That is what counts already."""


class TooLate(Exception):
    """The time to undo it is over."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """How long a topic's messages wait."""

    topic: str
    seconds: int  # 0: they leave at once
    by: str = ""
    row: SendAfter | None = None

    @property
    def words(self) -> str:
        """Return how long, in words."""
        return words(self.seconds)


@dataclass(frozen=True, kw_only=True)
class Undo:
    """A message that can be taken back just now, or that somebody has just taken back."""

    message: int
    until: datetime | None
    left: float  # seconds, by the database's clock
    asked: bool  # a person has asked for it; the outbox worker has not done it yet


def words(seconds: int) -> str:
    """Return a time in words, such as "30 seconds" or "5 minutes"; "Off" for none."""
    if not seconds:
        return "Off"
    number, unit = (seconds // 60, "minute") if seconds % 60 == 0 else (seconds, "second")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def topics() -> list[str]:
    """Return the topics that can wait: what somebody asked for and may take back."""
    return sorted(handler.topic for handler in handlers.every() if handler.asked_for)


def current() -> list[Pause]:
    """Return what counts now for each topic."""
    newest = {row.topic: row for row in SendAfter.objects.order_by("topic", "-id").distinct("topic")}
    names = people.names(row.set_by for row in newest.values())
    return [_pause(topic, newest.get(topic), names) for topic in topics()]


def history() -> list[Pause]:
    """Return what was set, newest first."""
    rows = list(SendAfter.objects.order_by("-id")[:HISTORY])
    names = people.names(row.set_by for row in rows)
    return [_pause(row.topic, row, names) for row in rows]


def set_pause(conn: Connection[Any], *, topic: str, seconds: int, reason: str, user: int) -> None:
    """Let messages of a topic that are queued from now on wait for so long. Raise NothingChanges."""
    conn.execute(LOCK, (topic,))
    row = conn.execute(NOW, (topic,)).fetchone()
    if (row[0] if row else 0) == seconds:
        raise NothingChanges
    conn.execute(SET, (topic, seconds, reason, user))


def undo(conn: Connection[Any], *, message: int, user: int) -> bool:
    """Ask, in the caller's transaction, that a message is withdrawn; return False if that was asked before. Raise TooLate.

    Ring outbox.deliver after the commit. Whoever is in time succeeds: the first try comes a little after the time is over.
    """
    row = conn.execute(IN_TIME, (message,)).fetchone()
    if row is not None and row[0]:
        try:
            requests.ask(conn, message=message, kind="cancel", reason=REASON, user=user)
        except requests.NotPossible:
            pass  # somebody was faster, or else it is too late
        else:
            return True
    if conn.execute(ASKED, (message, "withdrawn")).fetchone() is None:
        raise TooLate
    return False


def offered(messages: Iterable[Message]) -> dict[int, Undo]:
    """Return what can be taken back of these messages, or is being taken back, by id. Asks nothing when none of them waits."""
    waiting = [message.id for message in messages if message.state == Message.State.READY and message.undo_until]
    if not waiting:
        return {}
    asked = Request.objects.filter(message=OuterRef("pk"), kind=Request.Kind.CANCEL, carried_out_at__isnull=True)
    rows = Message.objects.filter(id__in=waiting).annotate(left=F("undo_until") - Now(), asked=Exists(asked))
    found = (Undo(message=row.id, until=row.undo_until, left=row.left.total_seconds(), asked=row.asked) for row in rows)
    return {one.message: one for one in found if one.asked or one.left > 0}


def _pause(topic: str, row: SendAfter | None, names: dict[int, str]) -> Pause:
    if row is None:
        return Pause(topic=topic, seconds=0)
    return Pause(topic=topic, seconds=row.seconds, by=names.get(row.set_by, f"user {row.set_by}"), row=row)
