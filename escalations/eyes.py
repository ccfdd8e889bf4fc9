"""Who may sign a proposal, and why: four eyes and the quorum, in the words of the page. The database judges the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from escalations.models import Signature
from escalations.proofs import Proof

Names = Mapping[int, str]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing to know about who signs."""

    state: str
    icon: str
    strong: str
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class Eyes:
    """What four eyes say to one reader."""

    may_sign: bool
    lines: list[Line] = field(default_factory=list)
    needs: int = 1
    signed: int = 0  # signatures that count: under this revision, and of what the newest preview shows

    @property
    def completes(self) -> bool:
        """Return whether the next signature is the last one."""
        return self.signed + 1 >= self.needs


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Who looks, as far as four eyes care."""

    id: int
    reviews: bool
    asked: bool  # wrote what the agent works on
    answered: bool = False  # told the agent what it proposes now


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Whose change of the calls is to be signed; None: they are the agent's own."""

    by: int | None = None
    lowers: bool = False
    as_person: bool = False


def of(*, reader: Reader, requester: str, edit: Edit, proof: Proof | None, signatures: Sequence[Signature], names: Names) -> Eyes:
    """Return who may sign the newest revision as its newest preview shows it."""
    counted = [row for row in signatures if proof and _saw_the_same(row, proof)]
    needs = proof.row.needs or 1 if proof else 1
    may, own = _own(reader=reader, requester=requester, edit=edit, proof=proof, signatures=counted)
    lines = [own, _quorum(needs=needs, counted=counted, names=names), *_void(signatures, counted=counted, names=names)]
    return Eyes(may_sign=may, lines=lines, needs=needs, signed=len(counted))


def _saw_the_same(row: Signature, proof: Proof) -> bool:
    return proof.same_as(Proof(row=row.preview)) and row.preview.verdicts == proof.row.verdicts


def _own(
    *, reader: Reader, requester: str, edit: Edit, proof: Proof | None, signatures: Sequence[Signature]
) -> tuple[bool, Line]:
    if not reader.reviews:
        return False, Line(state="", icon="eye", strong="You may look on.", rest="A reviewer decides.")
    if reader.asked:
        return False, Line(state="held", icon="users-round", strong="You asked for this.", rest="Another reviewer approves it.")
    if reader.answered:
        strong = "The agent proposes this on your answer."
        return False, Line(state="held", icon="users-round", strong=strong, rest="Another reviewer approves it.")
    if any(row.reviewer == reader.id for row in signatures):
        return False, Line(state="applied", icon="check", strong="You have signed it.", rest="Another reviewer has to sign too.")
    if edit.by == reader.id:
        return _editor(edit, proof)
    asked = f"{requester} asked; you did not change it." if requester else "You did not change it."
    return True, Line(state="applied", icon="check", strong="You may decide.", rest=asked)


def _editor(edit: Edit, proof: Proof | None) -> tuple[bool, Line]:
    """Say whether the author of a revision may sign it: only what lowers, and what no rule holds."""
    who = "You take it over" if edit.as_person else "You changed it"
    if not edit.lowers:
        rest = "Your change does more than lower an amount or drop a call."
        return False, Line(state="held", icon="users-round", strong=f"{who}, so another reviewer signs.", rest=rest)
    if proof is not None and not proof.row.allowed:
        rest = "A rule still holds it." if proof.clean else ""
        return False, Line(state="held", icon="users-round", strong=f"{who}, so another reviewer signs.", rest=rest)
    rest = (
        "It changes nothing upwards and no rule holds it." if edit.as_person else "Your change only lowers and no rule holds it."
    )
    return True, Line(state="applied", icon="check", strong="You may decide.", rest=rest)


def _quorum(*, needs: int, counted: Sequence[Signature], names: Names) -> Line:
    if needs < 2:
        return Line(state="", icon="user-round", strong="", rest="One reviewer is enough.")
    signed = ", ".join(f"{names.get(row.reviewer, 'somebody')} signed at {_time(row.signed_at)}" for row in counted)
    return Line(
        state="held",
        icon="users-round",
        strong=f"{len(counted)} of {needs} reviewers signed.",
        rest=f"{signed}." if signed else "",
    )


def _void(signatures: Sequence[Signature], *, counted: Sequence[Signature], names: Names) -> list[Line]:
    """Say which signatures saw something else than what would happen now."""
    void = [row for row in signatures if row not in counted]
    return [
        Line(state="undone", icon="history", strong=f"The signature of {names.get(row.reviewer, 'somebody')} does not count:",
             rest=f"it is for what the preview showed at {_time(row.preview.made_at)}.")
        for row in void
    ]  # fmt: skip


def _time(at: Any) -> str:
    return timezone.localtime(at).strftime("%H:%M:%S") if at else "no time"
