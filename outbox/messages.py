"""Writing a message with its cause, in the transaction of the cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from psycopg import Connection, sql
from psycopg.types.json import Jsonb

from outbox import handlers, leases, transitions

MAX_ATTEMPTS = 30  # with the back-off of outbox/backoff.py: about ten hours of a provider that is down
GIVE_UP_AFTER = timedelta(hours=48)
GRACE = timedelta(seconds=2)  # between the last undo that is taken and the first try: the undo has committed by then

LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(%s, 0))"
INSERT = sql.SQL("""
INSERT INTO public.outbox_message (uid, topic, destination, aggregate, dedupe_key, subject, thread, ai_message_id, call_index,
    payload, steps, api_version, repeat, max_attempts, give_up_at, next_attempt_at, undo_until, blocked)
SELECT %(uid)s, %(topic)s, %(destination)s, %(aggregate)s, %(dedupe_key)s, %(subject)s, %(thread)s, %(ai_message_id)s,
    %(call_index)s, %(payload)s, %(steps)s, %(api_version)s, %(repeat)s, %(max_attempts)s, now() + %(give_up_after)s,
    greatest(now() + %(delay)s, statement_timestamp() + undo.time + %(grace)s), statement_timestamp() + undo.time,
    EXISTS (SELECT FROM public.outbox_message older WHERE older.aggregate = %(aggregate)s AND older.state IN ({unfinished}))
FROM (SELECT nullif((SELECT seconds FROM public.outbox_send_after WHERE topic = %(topic)s ORDER BY id DESC LIMIT 1), 0)
             * interval '1 second') AS undo (time)  -- null, and so no part of the greatest, while the topic has none
""").format(unfinished=leases.states(transitions.UNFINISHED))


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The tool call that asked for an effect; all None for an effect without one."""

    thread: UUID | None = None
    ai_message_id: str | None = None
    call_index: int | None = None
    subject: int | None = None


def enqueue(
    conn: Connection[Any],
    *,
    topic: str,
    aggregate: str,
    dedupe_key: str,
    payload: Mapping[str, Any],
    cause: Cause,
    delay: timedelta = timedelta(0),
) -> UUID:
    """Promise an external effect in the caller's transaction and return the message's uid; nothing is fetched.

    A fact that was promised before raises UniqueViolation of `outbox_message_once`. The aggregate's lock makes the
    order of ids the order of commits, which is what keeps its messages in order, and tells whether an older one is unfinished:
    a message behind one is `blocked`, and claiming never looks at it (migrations/0002_rows.py lets it go). `delay` is how
    long it waits at least; while people may take it back (outbox/sends_after.py) it waits too.
    """
    handler, uid = handlers.find(topic), uuid4()
    conn.execute(LOCK, (aggregate,))
    conn.execute(
        INSERT,
        {
            "uid": uid,
            "topic": topic,
            "destination": handler.destination,
            "aggregate": aggregate,
            "dedupe_key": dedupe_key,
            "subject": cause.subject,
            "thread": cause.thread,
            "ai_message_id": cause.ai_message_id,
            "call_index": cause.call_index,
            "payload": Jsonb(dict(payload)),
            "steps": Jsonb(handlers.frozen(handler, payload=payload, uid=uid)),
            "api_version": settings.STRIPE_API_VERSION,
            "repeat": handler.repeat,
            "max_attempts": MAX_ATTEMPTS,
            "give_up_after": GIVE_UP_AFTER,
            "delay": delay,
            "grace": GRACE,
        },
    )
    return uid
