"""What a page does to an escalation: one transaction on Django's own connection, and the bell after its COMMIT."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from psycopg import Connection

from escalations import lifecycle
from escalations.decisions import Decision
from outbox import bell

log = structlog.get_logger()


@contextmanager
def writing() -> Iterator[Connection[Any]]:
    """Open a transaction and give the psycopg connection under Django's; nobody waits for a row longer than 5 seconds."""
    with transaction.atomic():
        connection.ensure_connection()
        conn: Connection[Any] = connection.connection
        conn.execute("SELECT set_config('lock_timeout', '5s', true)")
        yield conn


def claim(*, escalation: int, user: int, take_over: bool = False) -> None:
    """Hold an escalation; raises what `lifecycle.claim` raises."""
    with writing() as conn:
        lifecycle.claim(conn, escalation=escalation, user=user, take_over=take_over)


def claim_next(*, user: int) -> int | None:
    """Hold the most urgent one that nobody holds, and return it."""
    with writing() as conn:
        return lifecycle.claim_next(conn, user=user)


def release(*, escalation: int, user: int) -> None:
    """Give a claim back."""
    with writing() as conn:
        lifecycle.release(conn, escalation=escalation, user=user)


def decide(*, escalation: int, kind: str, text: str, user: int, revision: int) -> Decision:
    """Take the decision and wake the thread; raises what `lifecycle.decide` raises."""
    with writing() as conn:
        decision = lifecycle.decide(conn, escalation=escalation, kind=kind, text=text, user=user, revision=revision)
    log.info("escalations.escalation.decided", escalation=escalation, kind=kind, user=user, decision=decision.id)
    if decision.interrupt_id is not None and decision.thread is not None:
        wake(decision.thread)
    return decision


def wake(thread: UUID) -> bool:
    """Ring for the worker that goes on with the thread; the stored decision stays if nobody hears it."""
    return bell.ring("agent.drive", str(thread))
