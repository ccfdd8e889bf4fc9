"""For whom a request waits, since when and until when, and who looks at it: what staff may know. Pure."""

from dataclasses import dataclass
from datetime import datetime

from agent.conversations import Rows
from escalations.models import Escalation
from ledger.spans import moment

OPEN = (Escalation.State.OPEN, Escalation.State.CLAIMED)


@dataclass(frozen=True, kw_only=True)
class Waits:
    """An undecided question of the conversation."""

    escalation: int
    who: str  # the reviewer who has it, or "a reviewer"
    since: datetime
    target: datetime | None
    late: bool
    expires: datetime | None
    signed: str  # such as "1 of 2 reviewers signed"
    looks: str  # such as "reviewer2 is editing it"

    @property
    def words(self) -> str:
        """Return it as one short line."""
        parts = [f"Waits for {self.who} since {moment(self.since)}"]
        if self.target:
            parts.append(f"target {moment(self.target)}{', missed' if self.late else ''}")
        return " · ".join(filter(None, [*parts, self.signed, self.looks]))


def of(rows: Rows) -> Waits | None:
    """Return what the conversation waits for; None when nothing waits for a person's decision."""
    row = rows.undecided
    if row is None or row.state not in OPEN:
        return None
    has_it = row.state == Escalation.State.CLAIMED and bool(row.claimed_until and row.claimed_until > rows.read_at)
    return Waits(
        escalation=row.id,
        who=rows.name(row.claimed_by) if has_it else "a reviewer",
        since=row.opened_at,
        target=row.due_at,
        late=bool(row.due_at and row.due_at < rows.read_at),
        expires=row.expires_at,
        signed=_signed(rows),
        looks=_looks(rows, but=row.claimed_by if has_it else None),
    )


def _signed(rows: Rows) -> str:
    proposal = rows.proposal
    if proposal is None or (proposal.needs or 1) < 2:
        return ""
    return f"{len(proposal.signers)} of {proposal.needs} reviewers signed"


def _looks(rows: Rows, *, but: int | None) -> str:
    """Return who edits, else who looks; whoever has it is named already, unless they edit."""
    editing = [rows.name(one.person) for one in rows.looking if one.editing]
    looking = [rows.name(one.person) for one in rows.looking if not one.editing and one.person != but]
    if editing:
        return f"{together(editing)} {_be(editing)} editing it"
    return f"{together(looking)} {_be(looking)} looking" if looking else ""


def together(names: list[str]) -> str:
    """Return names as a list in words."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _be(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
