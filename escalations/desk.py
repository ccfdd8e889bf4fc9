"""What a page does to an escalation: one transaction on Django's own connection, and the bell after its COMMIT."""

from uuid import UUID

import structlog

from escalations import lifecycle
from escalations.decisions import Decision
from ledger import connections, faults
from outbox import bell

log = structlog.get_logger()


def claim(*, escalation: int, user: int, take_over: bool = False) -> None:
    """Hold an escalation; raises what `lifecycle.claim` raises."""
    with connections.writing() as conn:
        lifecycle.claim(conn, escalation=escalation, user=user, take_over=take_over)


def claim_next(*, user: int) -> int | None:
    """Hold the most urgent one that nobody holds, and return it."""
    with connections.writing() as conn:
        return lifecycle.claim_next(conn, user=user)


def release(*, escalation: int, user: int) -> None:
    """Give a claim back."""
    with connections.writing() as conn:
        lifecycle.release(conn, escalation=escalation, user=user)


def decide(*, escalation: int, kind: str, text: str, user: int, revision: int) -> Decision:
    """Take the decision and wake the thread; raises what `lifecycle.decide` raises."""
    with connections.writing() as conn:
        decision = lifecycle.decide(conn, escalation=escalation, kind=kind, text=text, user=user, revision=revision)
    log.info("escalations.escalation.decided", escalation=escalation, kind=kind, user=user, decision=decision.id)
    faults.reach("decision.committed", thread=decision.thread)
    if decision.interrupt_id is not None and decision.thread is not None:
        wake(decision.thread)
    return decision


def wake(thread: UUID) -> bool:
    """Ring for the worker that goes on with the thread; the stored decision stays if nobody hears it."""
    return bell.ring("agent.drive", str(thread))
