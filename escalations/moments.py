"""What happened to an escalation so far, as a timeline. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from escalations import questions
from escalations.models import Escalation
from ledger import marks
from ledger.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One line: what happened, and when."""

    at: datetime
    state: str
    what: str
    more: str = ""


def of(row: Escalation, *, attempts: Sequence[Evidence], outcome: Sequence[Evidence], names: Mapping[int, str]) -> list[Moment]:
    """Return the moments of an escalation, oldest first."""
    tried = [_tried(item, f"Attempt {item.number}" if item.number else "The agent tried:") for item in attempts]
    after = [_tried(item, "It ran:") for item in outcome]
    return sorted([*tried, *_own(row, names), *after], key=lambda moment: moment.at)


def _tried(item: Evidence, what: str) -> Moment:
    if item.mark == marks.READ:
        what = "The agent"
    return Moment(at=item.at, state=item.mark.state, what=what, more=item.mark.word.lower())


def _own(row: Escalation, names: Mapping[int, str]) -> list[Moment]:
    """Return what its own row tells."""
    mark = questions.KINDS[row.kind]
    found = [Moment(at=row.opened_at, state=mark.state, what="Put to a person:", more=mark.word.lower())]
    if row.decided_at:
        decision = marks.DECISIONS[row.decision.kind]
        by = names.get(row.decision.decided_by, "somebody") if row.decision.decided_by else "the system"
        found.append(Moment(at=row.decided_at, state=decision.state, what=decision.word, more=f"by {by}"))
    if row.resumed_at:
        found.append(Moment(at=row.resumed_at, state="info", what="The conversation", more="took the decision"))
    return found
