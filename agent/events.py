"""What browsers hear: rows that survive (`emit`, in the caller's transaction) and publishes that may be lost (`publish`)."""

import json
import time
from functools import cache
from typing import Any, Literal
from uuid import UUID

import redis
import structlog
from django.conf import settings
from psycopg import Connection, Cursor

log = structlog.get_logger()

Kind = Literal["feed", "status", "escalation"]
QUIET_SECONDS = 2.0  # after a failed publish: a dead broker must not slow down every chunk of a draft

# The row lock on agent_feed orders the events of a thread, and nobody reads a number before its event is committed.
# `{source}` is a relation with a column `thread`: an event for each of its rows.
EMIT_FOR = """
next AS (
    INSERT INTO public.agent_feed AS feed (thread, seq) SELECT thread, 1 FROM {source}
    ON CONFLICT (thread) DO UPDATE SET seq = feed.seq + 1
    RETURNING thread, seq
), emitted AS (
    INSERT INTO public.agent_event (thread, seq, kind) SELECT thread, seq, {kind} FROM next
)
"""
EMIT = f"WITH given (thread) AS (VALUES (%(thread)s::uuid)), {EMIT_FOR.format(source='given', kind='%(kind)s')} SELECT"


def emit(conn: Connection[Any] | Cursor[Any], *, thread: UUID, kind: Kind) -> None:
    """Insert one event in the caller's transaction; nothing is fetched, so it may travel in a pipeline."""
    conn.execute(EMIT, {"thread": thread, "kind": kind})


def emitted_for(source: str, *, kind: Kind) -> str:
    """Return the common table expressions that insert an event for each row of an earlier one named `source`."""
    return EMIT_FOR.format(source=source, kind=f"'{kind}'")


def channel(thread: UUID) -> str:
    """Return the broker channel of a thread."""
    return f"backstop:thread:{thread}"


@cache
def broker() -> "redis.Redis":
    """Return this process's client, with timeouts so short that a sick broker costs little."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)


def connect() -> None:
    """Connect to the broker before anybody waits for it. Raises RedisError after half a second."""
    broker().ping()


class _Silence:
    """Until when nothing is published, because the broker failed just now."""

    until = 0.0


def publish(thread: UUID, kind: str, **data: Any) -> bool:
    """Tell whoever listens right now, after COMMIT, and return whether the broker took it; a failure is logged, never raised."""
    if time.monotonic() < _Silence.until:
        return False
    try:
        broker().publish(channel(thread), json.dumps({"kind": kind, **data}))
    except (redis.RedisError, OSError) as error:
        _Silence.until = time.monotonic() + QUIET_SECONDS
        log.warning("agent.event.unheard", thread=str(thread), kind=kind, error=type(error).__name__)
        return False
    return True
