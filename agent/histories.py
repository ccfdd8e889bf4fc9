"""Who stopped a batch and who let it go on, in one line each. Pure functions over escalations and their decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

from escalations.models import Escalation
from ledger import calls as ran
from ledger import diffs, marks
from ledger.evidence import Evidence
from ledger.spans import clock

Names = Mapping[int, str]
Signers = Mapping[int, Sequence[int]]  # by revision
LETS_RUN = frozenset({"approve", "retry", "take_over"})
BY_ITSELF = frozenset({"expire", "settle"})  # decisions of no person
ENDS = {"retry": "Run again", "expire": "Expired"}
DEEDS = {
    "approve": "Approved by {}",
    "reject": "Rejected by {}",
    "answer": "Answered by {}",
    "retry": "Run again by {}",
    "take_over": "Taken over by {}",
    "withdraw": "Withdrawn by {}",
    "expire": "Nobody decided in time",
    "settle": "It came right by itself",
    "adopt": "Taken over from the provider by {}",
    "resend": "Sent again by {}",
    "settle_rejected": "Settled as refused by {}",
    "compensate": "Put right by {}",
    "refund": "Sent back by {}",
    "replay_thread": "Replayed by {}",
}

SAID = {
    "approve": "{} approved it",
    "reject": "{} rejected it",
    "answer": "{} answered",
    "retry": "{} had it run again",
    "take_over": "{} took it over from the agent",
    "withdraw": "{} withdrew the request",
    "expire": "Nobody decided in time: it expired",
    "settle": "Nobody has to look any more",
    "adopt": "{} took over what the provider says",
    "resend": "{} had it sent again",
    "settle_rejected": "{} settled it as refused",
    "compensate": "{} put it right elsewhere",
    "refund": "{} had the money sent back",
    "replay_thread": "{} had the conversation go on from where it stopped",
}


def word(escalation: Escalation) -> str:
    """Return how a question that was put to a person stands, in one word."""
    kind = decided(escalation)
    return ENDS.get(kind, marks.DECISIONS[kind].word) if kind else "Waits"


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


def let_run(escalations: Sequence[Escalation], attempt: Evidence) -> list[Escalation]:
    """Return those whose decisions let this attempt run."""
    return [row for row in escalations if decided(row) in LETS_RUN and row.decision.decided_at <= attempt.at]


def of(escalations: Sequence[Escalation], attempt: Evidence, *, names: Names, signers: Signers) -> tuple[str, ...]:
    """Return a line for each decision that let this attempt run."""
    earlier = let_run(escalations, attempt)
    return tuple(line for row in earlier for line in told(row, names=names, signers=signers))


def editor(escalations: Sequence[Escalation], attempt: Evidence, *, names: Names) -> str:
    """Return who made the calls of this attempt what they are."""
    revisions = [row.decision.revision for row in let_run(escalations, attempt)]
    authors = [revision.author for revision in revisions if revision and revision.author is not None]
    return names.get(authors[-1], "a reviewer") if authors else "a reviewer"


def told(escalation: Escalation | None, *, names: Names, signers: Signers) -> tuple[str, ...]:
    """Return the line of a decided escalation, nothing for an undecided one."""
    if escalation is None or not decided(escalation):
        return ()
    decision = escalation.decision
    deed = DEEDS.get(decision.kind, "Closed by {}").format(who(escalation, names=names, signers=signers))
    stop = "Held" if escalation.kind == "approval" else "Stopped"
    reason = f": “{decision.text}”" if decision.text and decision.kind not in BY_ITSELF else "."
    return (f"{stop} at {clock(escalation.opened_at)}. {deed} at {clock(decision.decided_at)}{reason}",)


def said(escalation: Escalation, *, names: Names, signers: Signers) -> str:
    """Return what was decided as an entry of the conversation: who, what of it changed, and why."""
    decision = escalation.decision
    deed = SAID.get(decision.kind, "{} closed it")
    if decision.kind == "approve" and (edits := changes(escalation)):
        deed = f"{{}} approved it as changed ({'; '.join(edits)})"
    deed = deed.format(who(escalation, names=names, signers=signers))
    if decision.kind == "expire" and escalation.kind == "approval":
        return f"{deed}. Nothing ran."
    return f"{deed}: “{decision.text}”" if decision.text and decision.kind != "expire" else f"{deed}."


def who(escalation: Escalation, *, names: Names, signers: Signers) -> str:
    """Return who decided, everybody who had to sign included."""
    decision = escalation.decision
    signed = [user for user in signers.get(decision.revision_id or 0, ()) if user != decision.decided_by]
    people = [*dict.fromkeys(signed), decision.decided_by] if (decision.needs or 1) > 1 else [decision.decided_by]
    return " and ".join(names.get(user or 0, "somebody") for user in people)


def changes(escalation: Escalation) -> list[str]:
    """Return what people changed of the calls that the escalation was opened with, such as "call 2 removed"."""
    revision = escalation.decision.revision
    if revision is None or not revision.number:
        return []
    runs = {call["index"]: call for call in revision.calls}
    found = []
    for call in escalation.payload.get("calls") or ():
        place = f"call {call['index'] + 1}"
        if call["index"] not in runs:
            found.append(f"{place} removed")
        elif said := changed(call["arguments"], runs[call["index"]]["arguments"]):
            found.append(f"{place}: {said}")
    return found


def changed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Return which arguments differ: "amount €320.00 → €280.00"; empty when none does."""
    old, new = before or {}, after or {}
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{diffs.label(name).lower()} {_value(name, old)} → {_value(name, new)}" for name in names)


def _value(name: str, arguments: Mapping[str, Any]) -> str:
    return ran.value(name, arguments) if arguments.get(name) not in (None, "") else "nothing"
