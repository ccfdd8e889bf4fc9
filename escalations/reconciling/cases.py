"""One disagreement as the reconcile desk shows it: both sides, its exits, and what came of it. Reads only."""

from datetime import datetime
from functools import cached_property
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import connection

from escalations import inbox, permissions, policies, questions
from escalations.models import Act, Decision, Escalation
from escalations.reconciling import deciding, listing, offers
from escalations.reconciling.offers import Offer
from ledger import diffs, marks, people, reconciling, sentences
from ledger.marks import Mark
from ledger.reconciling import Fact
from outbox import pages, requests
from outbox import reconciling as messages
from outbox.models import Delivery, Message
from outbox.timelines import Entry


class Case:
    """One disagreement for one reader at one time."""

    def __init__(self, row: Escalation, *, user: Any, now: datetime) -> None:
        self.row, self.user, self.now, self.payload = row, user, now, row.payload
        self.check, self.mark = listing.check_of(row), listing.mark_of(row)
        self.age = inbox.ago(now - row.opened_at)

    @cached_property
    def message(self) -> Message | None:
        """Return the outbox message that it is about."""
        found: Message | None = Message.objects.filter(id=self.payload.get("message_id") or 0).first()
        return found

    @property
    def own(self) -> bool:
        """Return whether it is about the message itself, not about books that differ from it."""
        return policies.is_of_message(object=self.row.object, payload=self.payload)

    @cached_property
    def looked(self) -> Delivery | None:
        """Return the message's last look-up."""
        if self.message is None:
            return None
        found: Delivery | None = (
            Delivery.objects.filter(message_id=self.message.id, step__in=["lookup", "webhook"]).order_by("-id").first()
        )
        return found

    @cached_property
    def now_says(self) -> reconciling.Disagreement | None:
        """Return the disagreement about a message as it is now; None for what a scan compared."""
        if not self.own or self.message is None:
            return None
        return messages.of_message(self.message, looked=self.looked.outcome if self.looked else None)

    @property
    def title(self) -> str:
        """Return what disagrees, in a sentence."""
        if self.row.state == "done" and not self.followed_by:
            return questions.title(self.row)
        told = self.payload.get("reason") or questions.title(self.row)
        unknown = self.message is not None and self.message.state in ("uncertain", "dead", "leased")
        return self.now_says.sentence if self.now_says and unknown else str(told)

    @property
    def detail(self) -> str:
        """Return what is known of how it came about, and what was tried before."""
        unknown = self.message is not None and self.message.state in ("uncertain", "dead")
        detail = self.now_says.detail if self.now_says and unknown else str(self.payload.get("detail") or "")
        before = self.payload.get("before")
        return f"{detail} What was decided before did not settle it: {before}.".strip() if before else detail

    @property
    def facts(self) -> list[Fact]:
        """Return what both sides say."""
        if self.now_says:
            return list(self.now_says.facts)
        return [Fact(**fact) for fact in self.payload.get("facts", ())]

    @property
    def differing(self) -> int:
        """Return how many facts differ."""
        return sum(fact.differs for fact in self.facts)

    @property
    def ours(self) -> str:
        """Return what heads our column."""
        return self.check.ours if self.check else "We believe"

    @property
    def theirs(self) -> str:
        """Return what heads the other side's column."""
        if self.own and self.message is not None:
            return f"{self.message.destination.capitalize()} says"
        return self.check.theirs if self.check else "The other side"

    @cached_property
    def customer(self) -> str:
        """Return the subject's name."""
        return people.subject_names([self.row.subject]).get(self.row.subject or 0, "")

    @cached_property
    def timeline(self) -> list[Entry]:
        """Return what happened to the message, oldest first."""
        found: list[Entry] = pages.case(self.message)["timeline"] if self.message else []
        return found

    # -- settling it -------------------------------------------------------------------------------

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """Return the decisions that its kind and state allow."""
        return policies.allowed_decisions(kind=self.row.kind, state=self.row.state, payload=self.payload)

    @cached_property
    def possible(self) -> list[str]:
        """Return what the message allows to be asked of it."""
        if self.message is None:
            return []
        connection.ensure_connection()
        return requests.possible(connection.connection, message=self.message.id)

    @cached_property
    def offers(self) -> list[Offer]:
        """Return the exits, offered or with the reason why not."""
        looked = self.looked.outcome if self.looked else None
        return offers.of(
            offers.Known(
                exits=[kind for kind in self.allowed if kind in policies.EXITS],
                message=self.message,
                possible=self.possible,
                verdict=messages.verdict(self.message, looked=looked) if self.message else "unknown",
                own=self.own,
                second_above=self.second_above,
                now=self.now,
            )
        )

    @property
    def second_above(self) -> str:
        """Return the amount above which a second person has to sign what was put right by hand; empty without one."""
        currency = self.payload.get("currency", "")
        if not currency or not self.payload.get("amount_minor"):
            return ""
        connection.ensure_connection()
        above = deciding.second_above(connection.connection, currency=currency)
        return "" if above is None else sentences.money(above, currency)

    @cached_property
    def may_decide(self) -> bool:
        """Return whether the reader is a reviewer, and did not ask for it."""
        return permissions.user_can_decide(self.user) and not self.asked_for

    @cached_property
    def asked_for(self) -> bool:
        """Return whether the reader asked for what this is about."""
        return permissions.user_has_asked(self.user, self.row)

    @property
    def held_by(self) -> str:
        """Return who else holds it now."""
        row = self.row
        held = row.state == "claimed" and row.claimed_until is not None and row.claimed_until > self.now
        return (
            people.names([row.claimed_by]).get(row.claimed_by or 0, "Somebody") if held and row.claimed_by != self.user.id else ""
        )

    @property
    def may_look_up(self) -> bool:
        """Return whether the provider can be asked once more."""
        return bool(self.allowed) and "look_up" in self.possible and self.request is None

    @cached_property
    def request(self) -> Any:
        """Return what was asked of the message and is not done yet, or None."""
        return self.message.requests.filter(carried_out_at__isnull=True).first() if self.message else None

    @cached_property
    def signed_by(self) -> str:
        """Return who has already signed that it was put right by hand."""
        acts = Act.objects.filter(escalation=self.row, kind=Act.Kind.SIGNED, detail__exit="compensate")
        return ", ".join(sorted(people.names(acts.values_list("by", flat=True)).values()))

    # -- what was decided ----------------------------------------------------------------------------

    @cached_property
    def decision(self) -> Decision | None:
        """Return the one decision, if it was taken."""
        try:
            found: Decision = self.row.decision
        except ObjectDoesNotExist:
            return None
        return found

    @property
    def decided(self) -> Mark:
        """Return the mark of the decision."""
        return marks.DECISIONS[self.decision.kind] if self.decision else marks.PROGRESS[self.row.state]

    @property
    def decided_by(self) -> str:
        """Return who decided: "You", a name, or the system."""
        by = self.decision.decided_by if self.decision else None
        return "the system" if by is None else "you" if by == self.user.id else people.names([by]).get(by, "somebody")

    @cached_property
    def carried_out(self) -> Any:
        """Return what the decision asked of the outbox worker, or None."""
        return self.message.requests.filter(escalation=self.row.id).order_by("-id").first() if self.message else None

    @property
    def outcome(self) -> str:
        """Return what the outbox worker said of what was asked of it."""
        return str(self.carried_out.outcome or "").removesuffix(".") if self.carried_out else ""

    @cached_property
    def records(self) -> list[diffs.Record]:
        """Return what became of the books' rows when it was carried out."""
        done = self.carried_out.carried_out_at if self.carried_out else None
        if self.message is None or self.decision is None or done is None:
            return []
        return pages.records(self.message, within=(self.decision.decided_at, done))

    @cached_property
    def followed_by(self) -> int | None:
        """Return the question that was opened because this decision did not settle it."""
        found: int | None = Escalation.objects.filter(follows=self.row).values_list("id", flat=True).first()
        return found

    @property
    def moving(self) -> bool:
        """Return whether the page will look different soon."""
        return self.row.state in ("decided", "resumed") or self.request is not None
