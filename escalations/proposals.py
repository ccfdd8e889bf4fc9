"""What waits for a decision: the calls of the newest revision, and why the rules hold them."""

from dataclasses import dataclass, field

from escalations import questions, verdicts
from escalations.models import Escalation
from escalations.verdicts import Verdict
from ledger import calls


@dataclass(frozen=True, kw_only=True)
class ProposedCall:
    """One call that waits."""

    number: int
    tool: str
    sentence: str
    lines: list[tuple[str, str]]
    held: bool


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A batch of calls as it would be signed. `revision` is 0 while nobody changed it, or when no calls are proposed."""

    revision: int = 0
    calls: list[ProposedCall] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


def of(escalation: Escalation) -> Proposal:
    """Return what the escalation proposes: its newest revision, else what its payload says."""
    revision = escalation.revisions.order_by("-number").first()
    judged = (revision.verdicts if revision else escalation.payload.get("verdicts")) or []
    asked = (revision.calls if revision else escalation.payload.get("calls")) or []
    found = [verdicts.of(row) for row in judged]
    held = {verdict.call_number for verdict in found}
    return Proposal(
        revision=revision.number if revision else 0,
        verdicts=found,
        calls=[
            ProposedCall(
                number=number,
                tool=row.get("tool", ""),
                sentence=questions.proposed(row),
                lines=calls.lines(row.get("arguments")),
                held=number in held,
            )
            for number, row in enumerate(asked, 1)
        ],
    )
