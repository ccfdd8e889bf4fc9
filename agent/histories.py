"""Who stopped a batch and who let it go on, in one line each. Pure functions over escalations and their decisions."""

from collections.abc import Mapping, Sequence

from escalations.models import Escalation
from ledger.evidence import Evidence
from ledger.spans import clock

LETS_RUN = frozenset({"approve", "retry"})
ENDS = {"approve": "Approved", "reject": "Rejected", "retry": "Run again", "answer": "Answered", "expire": "Expired"}
DEEDS = {"approve": "Approved by {}", "reject": "Rejected by {}", "retry": "Run again by {}", "expire": "Nobody decided in time"}


def word(escalation: Escalation) -> str:
    """Return how a question that was put to a person stands, in one word."""
    if not hasattr(escalation, "decision"):
        return "Waits"
    return ENDS.get(escalation.decision.kind, "Closed")


def decided(escalation: Escalation | None) -> str:
    """Return the kind of its decision, empty while there is none."""
    return str(escalation.decision.kind) if escalation and hasattr(escalation, "decision") else ""


def asked_for(escalations: Sequence[Escalation], attempt: Evidence) -> Escalation | None:
    """Return the escalation that was opened because of this attempt."""
    return next((row for row in escalations if row.payload.get("attempt_id") == str(attempt.id)), None)


def before(escalations: Sequence[Escalation], attempt: Evidence) -> Escalation | None:
    """Return the newest one about unanswered calls that this attempt was held for, or carries out the decision of."""
    own = asked_for(escalations, attempt)
    earlier = [row for row in escalations if decided(row) and row.decision.decided_at <= attempt.at]
    return own or (earlier[-1] if earlier else None)


def of(escalations: Sequence[Escalation], attempt: Evidence, *, names: Mapping[int, str]) -> tuple[str, ...]:
    """Return a line for each decision that let this attempt run."""
    earlier = [row for row in escalations if decided(row) in LETS_RUN and row.decision.decided_at <= attempt.at]
    return tuple(line for row in earlier for line in told(row, names=names))


def told(escalation: Escalation | None, *, names: Mapping[int, str]) -> tuple[str, ...]:
    """Return the line of a decided escalation, nothing for an undecided one."""
    if escalation is None or not decided(escalation):
        return ()
    decision = escalation.decision
    deed = DEEDS.get(decision.kind, "Closed by {}").format(names.get(decision.decided_by or 0, "somebody"))
    stop = "Held" if escalation.kind == "approval" else "Stopped"
    reason = f": “{decision.text}”" if decision.text else "."
    return (f"{stop} at {clock(escalation.opened_at)}. {deed} at {clock(decision.decided_at)}{reason}",)
