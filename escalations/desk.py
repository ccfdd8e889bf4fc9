"""What a page does to an escalation: one transaction on Django's own connection, and the bell after its COMMIT."""

from datetime import datetime
from uuid import UUID

import structlog

from escalations import lifecycle, presence, rows
from escalations.decisions import Decision
from escalations.presence import Looker
from escalations.revisions import Calls
from escalations.signatures import Signed
from ledger import connections, faults
from outbox import bell

log = structlog.get_logger()


def claim(*, escalation: int, user: int, from_another: bool = False) -> None:
    """Hold an escalation; raises what `lifecycle.claim` raises."""
    with connections.writing() as conn:
        lifecycle.claim(conn, escalation=escalation, user=user, from_another=from_another)


def claim_next(*, user: int) -> int | None:
    """Hold the most urgent one that nobody holds, and return it."""
    with connections.writing() as conn:
        return lifecycle.claim_next(conn, user=user)


def release(*, escalation: int, user: int) -> None:
    """Give a claim back."""
    with connections.writing() as conn:
        lifecycle.release(conn, escalation=escalation, user=user)


def reassign(*, escalation: int, user: int, to: int) -> None:
    """Give it to another reviewer; raises what `lifecycle.reassign` raises."""
    with connections.writing() as conn:
        lifecycle.reassign(conn, escalation=escalation, user=user, to=to)


def snooze(*, escalation: int, user: int, until: datetime) -> None:
    """Put it aside until a time; raises what `lifecycle.snooze` raises."""
    with connections.writing() as conn:
        lifecycle.snooze(conn, escalation=escalation, user=user, until=until)


def wake_up(*, escalation: int, user: int) -> None:
    """Show it again now; raises what `lifecycle.wake_up` raises."""
    with connections.writing() as conn:
        lifecycle.wake_up(conn, escalation=escalation, user=user)


def see(*, escalation: int, user: int, editing: bool = False) -> list[Looker]:
    """Note that a person looks, and return who else does."""
    with connections.writing() as conn:
        presence.see(conn, escalation=escalation, user=user, editing=editing)
        return presence.others(conn, escalation=escalation, user=user)


def revise(*, escalation: int, user: int, calls: Calls, shown: int, as_person: bool = False, text: str = "") -> int:
    """Change what is proposed and have it previewed; return the revision's number. Raises what `lifecycle.revise` raises."""
    with connections.writing() as conn:
        number = lifecycle.revise(
            conn, escalation=escalation, user=user, calls=calls, shown=shown, as_person=as_person, text=text
        )
        thread = rows.found(conn, escalation=escalation)["thread"]
    log.info("escalations.escalation.revised", escalation=escalation, user=user, revision=number, as_person=as_person)
    _wake(thread)
    return number


def ask_preview(*, escalation: int, user: int) -> int:
    """Have the newest revision run for real once more, and return the preview; raises what `lifecycle.ask_preview` raises."""
    with connections.writing() as conn:
        preview = lifecycle.ask_preview(conn, escalation=escalation, user=user)
        thread = rows.found(conn, escalation=escalation)["thread"]
    _wake(thread)
    return preview


def sign(*, escalation: int, user: int, revision: int, preview: int, text: str = "") -> Signed:
    """Sign what was shown and wake the thread when that decides it; raises what `lifecycle.sign` raises."""
    with connections.writing() as conn:
        signed = lifecycle.sign(conn, escalation=escalation, user=user, revision=revision, preview=preview, text=text)
    log.info("escalations.escalation.signed", escalation=escalation, user=user, signed=signed.signatures, needs=signed.needs)
    if signed.decision:
        _announce(signed.decision)
    return signed


def decide(*, escalation: int, kind: str, text: str, user: int) -> Decision:
    """Take the decision and wake the thread; raises what `lifecycle.decide` raises."""
    with connections.writing() as conn:
        decision = lifecycle.decide(conn, escalation=escalation, kind=kind, text=text, user=user)
    _announce(decision)
    return decision


def withdraw(*, escalation: int, user: int, text: str = "") -> Decision:
    """Take the request back and wake the thread; raises what `lifecycle.withdraw` raises."""
    with connections.writing() as conn:
        decision = lifecycle.withdraw(conn, escalation=escalation, user=user, text=text)
    _announce(decision)
    return decision


def _announce(decision: Decision) -> None:
    log.info(
        "escalations.escalation.decided",
        escalation=decision.escalation,
        kind=decision.kind,
        user=decision.decided_by,
        decision=decision.id,
    )
    faults.reach("decision.committed", thread=decision.thread)
    if decision.interrupt_id is not None:
        _wake(decision.thread)


def _wake(thread: UUID | None) -> None:
    if thread is not None:
        wake(thread)


def wake(thread: UUID) -> bool:
    """Ring for the worker that goes on with the thread; the stored decision stays if nobody hears it."""
    return bell.ring("agent.drive", str(thread))
