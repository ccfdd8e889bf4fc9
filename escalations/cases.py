"""One escalation with everything a reviewer needs, in the order of its page."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from escalations import eyes, inbox, moments, permissions, policies, questions, results, similar
from escalations.eyes import Eyes
from escalations.histories import History
from escalations.models import Act, Decision, Escalation
from escalations.moments import Moment
from escalations.proposals import Proposal
from ledger import marks, people, wiring
from ledger.evidence import Evidence
from ledger.marks import Mark
from outbox.effects import Effect

FRESH = timedelta(seconds=5)
PATIENCE = timedelta(seconds=10)  # after which a page no longer calls a missing preview normal


class Case:
    """An escalation for one reader at one time."""

    def __init__(self, escalation: Escalation, *, user: Any, now: datetime) -> None:
        self.escalation, self.user, self.now = escalation, user, now
        self.payload: dict[str, Any] = escalation.payload
        self.mark = questions.KINDS[escalation.kind]
        self.title = questions.headline(escalation)
        self.detail = questions.detail(escalation)
        self.age = inbox.ago(now - escalation.opened_at)
        self.target = inbox.ago(escalation.due_at - escalation.opened_at) if escalation.due_at else ""
        self.urgency = inbox.urgency(escalation, now=now)
        self.history = History(escalation)

    # -- who -------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> dict[int, str]:
        """Return the user names that the page mentions."""
        row, decided_by = self.escalation, self.decision.decided_by if self.decision else None
        written = [*(item.author for item in self.proposal.revisions), *(item.reviewer for item in self.proposal.signatures)]
        named = [row.requested_by, row.claimed_by, row.snoozed_by, decided_by, *written, *moments.people_of(self.acts)]
        return people.names(named)

    @property
    def requester(self) -> str:
        """Return who the agent worked for."""
        return self.names.get(self.escalation.requested_by or 0, "")

    @property
    def holder(self) -> str:
        """Return who holds it now: a name, "You", or nobody."""
        row = self.escalation
        if row.state != "claimed" or row.claimed_until is None or row.claimed_until <= self.now:
            return ""
        return "You" if row.claimed_by == self.user.id else self.names.get(row.claimed_by or 0, "Somebody")

    @property
    def held_by_another(self) -> bool:
        """Return whether somebody else's claim keeps the reader from deciding."""
        return self.holder not in ("", "You")

    @property
    def held_for(self) -> str:
        """Return how long the claim still lasts."""
        until = self.escalation.claimed_until
        return inbox.ago(until - self.now) if until else ""

    @property
    def sleeps(self) -> bool:
        """Return whether somebody put it off and the time is not over."""
        until = self.escalation.snoozed_until
        return bool(self.allowed and until and until > self.now)

    @cached_property
    def customer(self) -> str:
        """Return the subject's name."""
        return people.subject_names([self.escalation.subject]).get(self.escalation.subject or 0, "")

    # -- what stands beside it ---------------------------------------------------------------------

    @cached_property
    def panel(self) -> dict[str, Any]:
        """Return the context of the domain's own panel about the subject and what would become of it; empty without one."""
        if self.escalation.subject is None or not self.customer:
            return {}
        proof = self.proposal.proof if self.allowed else None
        calls = self.proposal.revision.calls if self.proposal.revision else self.proposal.original
        subjects = wiring.plugged("BACKSTOP_SUBJECTS")
        found: dict[str, Any] = subjects.review(
            self.escalation.subject, calls=calls, changes=proof.changes if proof and proof.clean else None
        )
        return found

    @cached_property
    def precedents(self) -> list[similar.Precedent]:
        """Return what was decided before about the like."""
        return similar.to(self.escalation)

    @cached_property
    def acts(self) -> list[Act]:
        """Return what people did with it, besides deciding."""
        return moments.acts_of(self.escalation)

    @property
    def timeline(self) -> list[Moment]:
        """Return what happened so far, oldest first."""
        tried = self.history.attempts
        return moments.of(
            self.escalation, attempts=tried, outcome=self.outcome, acts=self.acts, names=self.names, reader=self.user.id
        )

    # -- what is proposed, and who may sign it -------------------------------------------------------

    @cached_property
    def proposal(self) -> Proposal:
        """Return the calls that wait, why the rules hold them, and what their preview proved."""
        return Proposal(self.escalation)

    @property
    def with_calls(self) -> bool:
        """Return whether there are calls that a reviewer may change, drop or take over."""
        return "edit" in self.allowed and bool(self.proposal.revisions)

    @property
    def asks_to_sign(self) -> bool:
        """Return whether the newest revision is there to be signed: the agent's own only when it was held."""
        return "approve" in self.allowed and bool(self.proposal.revisions)

    @property
    def shows_calls(self) -> bool:
        """Return whether the calls are what it is about; otherwise the attempts tell about them."""
        return bool(self.proposal.calls) and (self.payload.get("phase") == "before_answers" or self.proposal.number > 0)

    @property
    def taken_over(self) -> bool:
        """Return whether the newest revision is to be performed by its author, not by the agent."""
        return bool(self.proposal.revision and self.proposal.revision.as_person)

    @property
    def author(self) -> str:
        """Return who changed the calls last: a name, "You", or nobody."""
        user = self.proposal.revision.author if self.proposal.revision else None
        return "" if user is None else "You" if user == self.user.id else self.names.get(user, "somebody").capitalize()

    @cached_property
    def eyes(self) -> Eyes:
        """Return what four eyes say to the reader."""
        reader = eyes.Reader(
            id=self.user.id,
            reviews=self.may_decide,
            asked=self.may_decide and permissions.user_has_asked(self.user, self.escalation),
            answered=self.may_decide and permissions.user_has_answered(self.user, self.escalation),
        )
        by, lowers = self.proposal.editor
        return eyes.of(
            reader=reader,
            requester=self.requester,
            edit=eyes.Edit(by=by, lowers=lowers, as_person=self.taken_over),
            proof=self.proposal.proof,
            signatures=self.proposal.signatures,
            names=self.names,
        )

    @property
    def may_sign(self) -> bool:
        """Return whether the reader may sign what is on the page."""
        return self.asks_to_sign and self.proposal.signable and self.eyes.may_sign and not self.held_by_another

    @property
    def slow(self) -> bool:
        """Return whether the preview takes longer than a reviewer should wait without a word."""
        pending = self.proposal.pending
        return bool(pending and self.now - pending.requested_at > PATIENCE)

    # -- what was decided, and what came of it --------------------------------------------------------

    @cached_property
    def decision(self) -> Decision | None:
        """Return the one decision, if it was taken."""
        try:
            found: Decision = self.escalation.decision
        except ObjectDoesNotExist:
            return None
        return found

    @property
    def decided_ago(self) -> str:
        """Return how long ago the decision was taken."""
        return inbox.ago(self.now - self.escalation.decided_at) if self.escalation.decided_at else ""

    @property
    def decided(self) -> Mark:
        """Return the mark of the decision."""
        return marks.DECISIONS[self.decision.kind] if self.decision else marks.PROGRESS[self.escalation.state]

    @property
    def decided_by(self) -> str:
        """Return who decided: a name, "you", or the system's own policy."""
        user = self.decision.decided_by if self.decision else None
        if user is None:
            return "the system"
        return "you" if user == self.user.id else self.names.get(user, "somebody")

    @cached_property
    def outcome(self) -> list[Evidence]:
        """Return the attempts that the decision led to, newest first."""
        return results.attempts(self.escalation)

    @cached_property
    def outcome_messages(self) -> list[Effect]:
        """Return what those attempts sent."""
        return results.effects(self.escalation, attempts=self.outcome)

    @cached_property
    def followed_by(self) -> int | None:
        """Return the escalation that asks again, because what was approved here did not run."""
        found: int | None = (
            Escalation.objects.filter(follows=self.escalation).order_by("-id").values_list("id", flat=True).first()
        )
        return found

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """Return the decisions that kind, state and newest revision allow."""
        row = self.escalation
        return policies.allowed_decisions(kind=row.kind, state=row.state, payload=self.payload, revision=self.proposal.number)

    @property
    def disagrees(self) -> bool:
        """Return whether it is about two sides that disagree, which has a desk of its own."""
        return self.escalation.kind in policies.RECONCILED

    @property
    def may_decide(self) -> bool:
        """Return whether the reader is a reviewer."""
        return permissions.user_can_decide(self.user)

    @property
    def waits(self) -> bool:
        """Return whether a decision was taken and nothing came of it yet."""
        return bool(self.escalation.state == "decided" and not self.outcome)

    @property
    def fresh(self) -> bool:
        """Return whether the decision is so new that nobody has to wonder what became of it."""
        decided_at = self.escalation.decided_at
        return bool(decided_at and self.now - decided_at < FRESH)

    @property
    def moving(self) -> bool:
        """Return whether the page will look different soon; once it is asked again, the rest is another page's."""
        return self.escalation.state in ("decided", "resumed") and self.followed_by is None
