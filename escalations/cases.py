"""One escalation with everything a reviewer needs, in the order of its page."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from escalations import conversations, inbox, moments, permissions, policies, proposals, questions, results, turns, verdicts
from escalations.models import Decision, Escalation
from escalations.moments import Moment
from ledger import evidence, links, marks, people, wiring
from ledger.evidence import Evidence
from ledger.marks import Mark
from outbox.effects import Effect
from outbox.models import Message

FRESH = timedelta(seconds=5)


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

    @property
    def decided_ago(self) -> str:
        """Return how long ago the decision was taken."""
        return inbox.ago(self.now - self.escalation.decided_at) if self.escalation.decided_at else ""

    @cached_property
    def decision(self) -> Decision | None:
        """Return the one decision, if it was taken."""
        try:
            found: Decision = self.escalation.decision
        except ObjectDoesNotExist:
            return None
        return found

    @cached_property
    def names(self) -> dict[int, str]:
        """Return the user names that the page mentions."""
        decided_by = self.decision.decided_by if self.decision else None
        return people.names([self.escalation.requested_by, self.escalation.claimed_by, decided_by])

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

    @cached_property
    def customer(self) -> str:
        """Return the subject's name."""
        return people.subject_names([self.escalation.subject]).get(self.escalation.subject or 0, "")

    @cached_property
    def panel(self) -> dict[str, Any]:
        """Return the context of the domain's own panel about the subject; empty without one."""
        if self.escalation.subject is None or not self.customer:
            return {}
        found: dict[str, Any] = wiring.plugged("BACKSTOP_SUBJECTS").panel(self.escalation.subject)
        return found

    @property
    def moment(self) -> datetime:
        """Return the time at which what it is about was asked for: a message was queued long before it was refused."""
        found: datetime = self.message.created_at if self.message else self.escalation.opened_at
        return found

    @cached_property
    def request(self) -> Any:
        """Return the staff member's message that it came from, or None."""
        row = self.escalation
        return links.staff_message(row.thread, before=self.moment) if row.thread else None

    @property
    def staff_message(self) -> str:
        """Return what the staff member asked."""
        return str(self.payload.get("staff_message") or (self.request.text if self.request else ""))

    @cached_property
    def conversation(self) -> int | None:
        """Return the conversation's number."""
        return conversations.number_of(self.escalation.thread) if self.escalation.thread else None

    @cached_property
    def entries(self) -> list[conversations.Entry]:
        """Return the part of the conversation that it came from."""
        row = self.escalation
        return conversations.around(row.thread, at=self.moment) if row.thread else []

    # -- what is proposed ------------------------------------------------------------------------

    @cached_property
    def proposal(self) -> proposals.Proposal:
        """Return the calls that wait, and why the rules hold them."""
        return proposals.of(self.escalation)

    @property
    def verdicts(self) -> list[verdicts.Verdict]:
        """Return why the rules hold it."""
        return self.proposal.verdicts

    @property
    def calls(self) -> list[proposals.ProposedCall]:
        """Return what would run, exactly as it would be signed."""
        return self.proposal.calls

    @property
    def shows_calls(self) -> bool:
        """Return whether the calls still wait; otherwise the attempts tell about them."""
        return self.payload.get("phase") == "before_answers"

    # -- what was tried --------------------------------------------------------------------------

    @cached_property
    def attempts(self) -> list[Evidence]:
        """Return every attempt at the request before the decision: the one that queued the message first, then the newest."""
        row = self.escalation
        if row.thread is None:
            return []
        return turns.attempts(row.thread, at=self.moment, request=self.request, until=row.decided_at, about=self.message)

    @property
    def cause(self) -> Evidence | None:
        """Return the attempt that queued the message that this is about."""
        return next((item for item in self.attempts if turns.is_cause(item, of=self.message)), None)

    @cached_property
    def compared(self) -> list[Evidence]:
        """Return the attempts that failed, oldest first."""
        failed = [item for item in self.attempts if item.result in ("rolled_back", "refused")]
        return sorted(failed, key=lambda item: item.at)

    @property
    def differing(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return the arguments that differ between the attempts."""
        return evidence.differing(self.compared)

    @property
    def effects(self) -> list[Effect]:
        """Return the same as a list, for the call that promised it."""
        return [self.sent] if self.sent else []

    @property
    def message(self) -> Message | None:
        """Return the outbox message that it is about."""
        return self.sent.message if self.sent else None

    @cached_property
    def sent(self) -> Effect | None:
        """Return the external effect that it is about."""
        message = Message.objects.filter(id=self.payload.get("message_id") or 0).first()
        return Effect(message=message) if message else None

    # -- what came of it ---------------------------------------------------------------------------

    @cached_property
    def outcome(self) -> list[Evidence]:
        """Return the attempts that the decision led to, newest first."""
        return results.attempts(self.escalation)

    @cached_property
    def outcome_messages(self) -> list[Effect]:
        """Return what those attempts sent."""
        return results.effects(self.escalation, attempts=self.outcome)

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

    @property
    def timeline(self) -> list[Moment]:
        """Return what happened so far, oldest first."""
        return moments.of(self.escalation, attempts=self.attempts, outcome=self.outcome, names=self.names)

    # -- what may be decided -----------------------------------------------------------------------

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """Return the decisions that kind and state allow."""
        return policies.allowed_decisions(kind=self.escalation.kind, state=self.escalation.state, payload=self.payload)

    @property
    def own(self) -> bool:
        """Return whether the reader asked for it: then somebody else has to approve."""
        return bool(self.escalation.requested_by == self.user.id)

    @property
    def may_decide(self) -> bool:
        """Return whether the reader is a reviewer."""
        return permissions.user_can_decide(self.user)

    @property
    def held_by_another(self) -> bool:
        """Return whether somebody else's claim keeps the reader from deciding."""
        return self.holder not in ("", "You")

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
        """Return whether the page will look different soon."""
        return self.escalation.state in ("decided", "resumed")
