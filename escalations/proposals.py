"""What waits for a decision: the calls of the newest revision, why the rules hold them, and what its newest preview proved."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from escalations import drifts, limits, proofs, questions, verdicts
from escalations.models import Decision, Escalation, Preview, Revision, Signature
from escalations.proofs import Leaving, Proof
from escalations.verdicts import Verdict
from ledger import calls, diffs
from ledger.calls import Fault
from ledger.marks import Mark

Row = Mapping[str, Any]
WAITS = Mark(state="queued", icon="circle-dashed", word="Waits")
WOULD_APPLY = Mark(state="queued", icon="circle-dashed", word="Would apply")
HELD = Mark(state="held", icon="hand", word="Trips a rule")
WOULD_FAIL = Mark(state="failed", icon="x", word="Would fail")
INVALID = Mark(state="failed", icon="ban", word="Not valid")
REFUSED = Mark(state="failed", icon="ban", word="Refused")
WOULD_NOT = Mark(state="undone", icon="circle-dashed", word="Would not run")
DROPPED = Mark(state="undone", icon="x", word="Dropped")


@dataclass(frozen=True, kw_only=True)
class ProposedCall:
    """One call that waits, or that a reviewer dropped."""

    index: int
    tool: str
    sentence: str
    lines: list[tuple[str, str]]
    mark: Mark
    dropped: bool
    edited: list[tuple[str, str, str]]  # label, what the agent sent, what would run
    records: list[diffs.Record]
    leaving: list[Leaving]
    problem: str
    fault: Fault | None

    @property
    def number(self) -> int:
        """Return its place as people count."""
        return self.index + 1

    @property
    def held(self) -> bool:
        """Return whether a rule holds it."""
        return self.mark is HELD


class Proposal:
    """A batch of calls as it would be signed. Without calls there is no revision, and nothing to sign."""

    def __init__(self, escalation: Escalation) -> None:
        self.escalation = escalation
        self.payload: Row = escalation.payload
        self.revisions: list[Revision] = list(escalation.revisions.order_by("number"))
        self.revision = self.revisions[-1] if self.revisions else None
        self.previews = proofs.of(self.revision)

    @property
    def number(self) -> int:
        """Return the newest revision's number; 0 is the agent's own."""
        return self.revision.number if self.revision else 0

    @property
    def newest(self) -> Preview | None:
        """Return the newest preview of the newest revision, made or not."""
        return self.previews[0] if self.previews else None

    @property
    def pending(self) -> Preview | None:
        """Return the preview that was asked for and is not made yet."""
        return self.newest if self.newest and self.newest.made_at is None else None

    @cached_property
    def made(self) -> list[Proof]:
        """Return the previews of this revision that were made, newest first."""
        return [Proof(row=row) for row in self.previews if row.made_at]

    @property
    def proof(self) -> Proof | None:
        """Return what the newest preview showed; None while it is being made."""
        return self.made[0] if self.made and not self.pending else None

    @cached_property
    def stale(self) -> Proof | None:
        """Return what an older preview showed, while a newer one is being made."""
        if not self.pending:
            return None
        return self.made[0] if self.made else self.approved

    @property
    def shown(self) -> Proof | None:
        """Return the preview on the page, out of date or not."""
        return self.proof or self.stale

    @property
    def stage(self) -> str:
        """Return how far the preview is: "none", "making", or its outcome."""
        return "making" if self.pending else self.proof.outcome if self.proof else "none"

    @property
    def signable(self) -> bool:
        """Return whether the page shows what would run, so that somebody may sign it."""
        return bool(self.proof and self.proof.clean)

    @cached_property
    def stopped(self) -> Decision | None:
        """Return the approval that did not run, because something had changed by then."""
        number = self.payload.get("drifted_from")
        return Decision.objects.filter(id=number).select_related("preview").first() if number else None

    @property
    def approved(self) -> Proof | None:
        """Return what that approval was for; an edit since then is another proposal."""
        shown = self.stopped.preview if self.stopped and self.number == 0 else None
        return Proof(row=shown) if shown and shown.made_at else None

    @cached_property
    def editor(self) -> tuple[int | None, bool]:
        """Return whose edit it is, and whether it only lowers. The agent's own calls, put back, are nobody's; what was approved
        as edited and is asked again, since it did not run, is still its editor's, and lowering one's own raise is no lowering."""
        revision = self.revision
        signed = Signature.objects.filter(revision=self.stopped.revision_id).order_by("-id").first() if self.stopped else None
        if revision and (revision.as_person or revision.calls != self.revisions[0].calls):
            raised = signed is not None and signed.editor == revision.author and not signed.lowers
            return revision.author, revision.lowers and not raised
        return (signed.editor, bool(signed.lowers)) if signed else (None, False)

    @cached_property
    def drift(self) -> drifts.Drift | None:
        """Return what changed since a person looked: since the approval that did not run, else since the last preview."""
        if not self.proof or not self.proof.clean:
            return None
        looked = next((proof for proof in self.made[1:] if proof.clean), self.approved)
        if looked is None or looked.same_as(self.proof):
            return None
        return drifts.between(looked, self.proof)

    @cached_property
    def signatures(self) -> list[Signature]:
        """Return the signatures under the newest revision, oldest first."""
        found = Signature.objects.filter(revision=self.revision) if self.revision else Signature.objects.none()
        return list(found.select_related("preview").order_by("id"))

    @property
    def judged(self) -> list[Row]:
        """Return the stored verdicts on what is proposed; an edit is judged by its own preview alone."""
        if self.shown:
            return self.shown.row.verdicts or []
        return (self.payload.get("verdicts") or []) if self.number == 0 else []

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Return why the rules hold it."""
        set_in = limits.of(self.judged)
        at = self.shown.at if self.shown else self.escalation.opened_at
        return [verdicts.of(row, setting=set_in.get(verdicts.version(row)), checked_at=at) for row in self.judged]

    @property
    def original(self) -> list[Row]:
        """Return the agent's own calls."""
        return (self.revisions[0].calls if self.revisions else self.payload.get("calls")) or []

    @cached_property
    def calls(self) -> list[ProposedCall]:
        """Return every call that the agent proposed, as it would run now or as dropped."""
        now = {row["index"]: row for row in (self.revision.calls if self.revision else self.original)}
        said = {row.get("index"): row for row in self.payload.get("calls") or ()}
        return [self._call(row, now.get(row["index"]), said.get(row["index"], row)) for row in self.original]

    @property
    def kept(self) -> list[ProposedCall]:
        """Return the calls that would run."""
        return [call for call in self.calls if not call.dropped]

    def _call(self, original: Row, now: Row | None, said: Row) -> ProposedCall:
        index, proof = int(original["index"]), self.shown
        current = now or original
        fails = proof is not None and proof.failed_call == index
        return ProposedCall(
            index=index,
            tool=current.get("tool", ""),
            sentence=questions.proposed(said if current.get("arguments") == original.get("arguments") else current),
            lines=calls.lines(current.get("arguments")),
            mark=self._mark(index) if now else DROPPED,
            dropped=now is None,
            edited=_edited(original, now) if now else [],
            records=proof.records_of(index) if proof and now else [],
            leaving=proof.leaving_of(index) if proof and now else [],
            problem=proof.problem if proof and fails else "",
            fault=proof.fault if proof and fails else None,
        )

    def _mark(self, index: int) -> Mark:
        proof = self.shown
        if proof and proof.failed_call == index:
            return {"invalid": INVALID, "refused": REFUSED}.get(proof.outcome, WOULD_FAIL)
        if any(row.get("call_index") == index and row.get("action") == "refuse" for row in self.judged):
            return REFUSED
        if any(row.get("call_index") == index and row.get("action") == "hold" for row in self.judged):
            return HELD
        if proof is None:
            return WAITS
        return WOULD_APPLY if proof.clean else WOULD_NOT


def _edited(original: Row, now: Row) -> list[tuple[str, str, str]]:
    """Return the arguments that a reviewer changed."""
    old, new = (dict(row.get("arguments") or {}) for row in (original, now))
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [
        (diffs.label(name), *(calls.value(name, given) if given.get(name) is not None else "—" for given in (old, new)))  # type: ignore[misc]
        for name in names
    ]
