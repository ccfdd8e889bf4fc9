"""What was decided before about calls of the same tools: the newest decisions of people, those about the same subject first."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from escalations import questions
from escalations.models import Decision, Escalation
from ledger import marks, people
from ledger.marks import Mark

SHOWN = 4
RECENT = 300  # decisions that are looked through, whatever the number of all
KINDS = ("approve", "reject", "take_over")


@dataclass(frozen=True, kw_only=True)
class Precedent:
    """One earlier decision."""

    escalation: int
    title: str
    amount: str
    mark: Mark
    by: str
    at: datetime
    reason: str
    same_subject: bool


def to(row: Escalation) -> list[Precedent]:
    """Return the earlier decisions that are most like this question."""
    tools = {call.get("tool") for call in row.payload.get("calls") or ()}
    if not tools:
        return []
    recent = Decision.objects.filter(kind__in=KINDS, escalation_id__lt=row.id).exclude(decided_by=None)
    newest = recent.order_by("-id").values_list("id", flat=True)[:RECENT]
    same_tool = Q()
    for tool in sorted(tool for tool in tools if tool):
        same_tool |= Q(escalation__payload__calls__contains=[{"tool": tool}])
    found = list(Decision.objects.filter(same_tool, id__in=list(newest)).select_related("escalation").order_by("-id")[:20])
    found.sort(key=lambda decision: decision.escalation.subject != row.subject)
    names = people.names(decision.decided_by for decision in found[:SHOWN])
    return [_precedent(decision, row, names.get(decision.decided_by or 0, "somebody")) for decision in found[:SHOWN]]


def _precedent(decision: Decision, row: Escalation, by: str) -> Precedent:
    earlier = decision.escalation
    return Precedent(
        escalation=earlier.id,
        title=questions.title(earlier),
        amount=questions.amount(earlier),
        mark=marks.DECISIONS[decision.kind],
        by=by,
        at=decision.decided_at,
        reason=decision.text,
        same_subject=earlier.subject == row.subject,
    )
