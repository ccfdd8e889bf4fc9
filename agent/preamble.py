"""How every transaction on a thread begins: timeouts and subject, the thread's lock, the fence."""

from typing import Any
from uuid import UUID

from django.conf import settings
from psycopg import Connection

from ledger import connections
from ledger.attempts import Attempt

TIMEOUTS = {
    "statement_timeout": "5s",
    "idle_in_transaction_session_timeout": "5s",
}
LOCK_TIMEOUT = "2s"
TRANSACTION_TIMEOUT = "10s"  # a setting of PostgreSQL 17 and newer


def begin(
    conn: Connection[Any], attempt: Attempt, *, isolation: str = "read committed", lock_timeout: str = LOCK_TIMEOUT
) -> None:
    """Send the beginning of a fenced transaction; nothing is fetched, so that a pipeline need not wait.

    The timeouts come first: the lock itself must not wait for ever. Whatever is read afterwards is read with a
    snapshot taken under the lock. Raises (when its answer is read) SQLSTATE BS001 if the lease was lost.
    """
    conn.execute("BEGIN ISOLATION LEVEL SERIALIZABLE" if isolation == "serializable" else "BEGIN")
    prepare(conn, attempt, lock_timeout=lock_timeout)


def prepare(conn: Connection[Any], attempt: Attempt, *, lock_timeout: str = LOCK_TIMEOUT) -> None:
    """Do the same in a transaction that the caller has begun."""
    names, values = zip(*(_settings(conn, attempt) | {"lock_timeout": lock_timeout}).items(), strict=True)
    conn.execute(f"SELECT {', '.join(['set_config(%s, %s, true)'] * len(names))}", _flat(names, values))
    conn.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", (lock_key(attempt.thread),))
    conn.execute("SELECT public.agent_fence(%s, %s)", (attempt.thread, attempt.fence))


def lock_key(thread: UUID) -> int:
    """Return the thread's 64-bit advisory lock key."""
    return int.from_bytes(thread.bytes[:8], "big", signed=True)


def _settings(conn: Connection[Any], attempt: Attempt) -> dict[str, str]:
    chosen = dict(TIMEOUTS)
    if connections.can_limit(conn):
        chosen["transaction_timeout"] = TRANSACTION_TIMEOUT
    if settings.BACKSTOP_TRACE_FAILED_CALL:
        chosen["backstop.trace"] = "on"
    return chosen | {"backstop.subject": str(attempt.subject), "backstop.attempt": str(attempt.id), "backstop.call": ""}


def _flat(names: tuple[str, ...], values: tuple[str, ...]) -> list[str]:
    return [item for pair in zip(names, values, strict=True) for item in pair]
