"""Asking the same of many messages: first what would come of it, message by message, then the requests themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from outbox import fates, handlers, requests
from outbox.models import Message

MOST = 500  # messages at once
KINDS = ("replay", "cancel", "look_up")  # the other ways out of a message are decisions of the reconcile desk
POSSIBLE = """
SELECT m.id, coalesce(({allowed}), false), EXISTS (
    SELECT FROM public.outbox_request r WHERE r.message_id = m.id AND r.carried_out_at IS NULL)
FROM public.outbox_message m WHERE m.id = ANY(%s)
"""
TWICE = "Somebody has asked for something that is not done yet."
WILL = {
    "cancel": "It is never sent, and the books are as before it was queued.",
    "look_up": "The provider is asked what it has; what is new there is taken over.",
}
RESENT = "It is looked up at the provider first, and sent only if nothing of it is there."
SENT = "It is sent. Nothing of it ever reached the provider."


@dataclass(frozen=True, kw_only=True)
class Line:
    """One message, and what would come of asking."""

    message: Message
    sentence: str
    fate: fates.Fate
    possible: bool
    says: str


def dry_run(conn: Connection[Any], *, messages: Iterable[Message], kind: str) -> list[Line]:
    """Return what asking would do, in the order of the messages. Changes nothing."""
    rows = list(messages)
    query = sql.SQL(POSSIBLE).format(allowed=sql.SQL(requests.ALLOWED[kind]))
    found = {number: (allowed, asked) for number, allowed, asked in conn.execute(query, ([row.id for row in rows],))}
    return [_line(row, kind, *found.get(row.id, (False, False))) for row in rows]


def ask(conn: Connection[Any], *, messages: Sequence[int], kind: str, reason: str, user: int) -> list[int]:
    """Record a request for each message that still allows it, in the caller's transaction, and return those messages."""
    asked = []
    for message in messages:
        try:
            requests.ask(conn, message=message, kind=kind, reason=reason, user=user)
        except requests.NotPossible:
            continue
        asked.append(message)
    return asked


def will(message: Message, kind: str) -> str:
    """Return what carrying the request out does."""
    if kind == "replay":
        return RESENT if message.first_sent_at else SENT
    return WILL[kind]


def _line(message: Message, kind: str, allowed: bool, asked: bool) -> Line:
    return Line(
        message=message,
        sentence=handlers.sentence(topic=message.topic, payload=message.payload),
        fate=fates.fate(message),
        possible=allowed and not asked,
        says=will(message, kind) if allowed and not asked else TWICE if asked else _why_not(message, kind),
    )


def _why_not(message: Message, kind: str) -> str:
    if kind == "replay":
        return "It may have happened, and may not be repeated." if message.compensation_needed else "It does not need a person."
    if message.repeat == Message.Repeat.HARMLESS:
        return "A notice: the provider keeps nothing of it."
    if kind == "look_up":
        return "Nothing of it ever left."
    return "It was sent." if message.first_sent_at else "It has ended."


def said(kind: str, *, asked: int, left: int) -> str:
    """Return what was asked for, in a sentence."""
    what = {"replay": "try {} again", "cancel": "withdraw {}", "look_up": "look {} up"}[kind]
    messages = "1 message" if asked == 1 else f"{asked} messages"
    rest = f" {left} no longer allowed it: nothing was asked of {'it' if left == 1 else 'them'}." if left else ""
    return (
        f"Asked to {what.format(messages)}. The outbox worker does so within seconds.{rest}"
        if asked
        else f"Nothing was asked.{rest}"
    )
