"""Where a question came from: the request, what the agent tried for it, what was said, and the message that it is about."""

from datetime import datetime
from functools import cached_property
from typing import Any

from escalations import conversations, turns
from escalations.models import Escalation
from ledger import evidence, links
from ledger.evidence import Evidence
from outbox.effects import Effect
from outbox.models import Message


class History:
    """What happened before the question was put."""

    def __init__(self, escalation: Escalation) -> None:
        self.escalation = escalation

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
        return str(self.escalation.payload.get("staff_message") or (self.request.text if self.request else ""))

    @cached_property
    def conversation(self) -> int | None:
        """Return the conversation's number."""
        return conversations.number_of(self.escalation.thread) if self.escalation.thread else None

    @cached_property
    def person(self) -> tuple[str, datetime] | None:
        """Return who answers instead of the agent while the thread waits for this, and since when."""
        row = self.escalation
        waits = row.thread is not None and row.interrupt_id is not None and row.resumed_at is None
        return conversations.stepped_in(row.thread) if waits else None

    @cached_property
    def entries(self) -> list[conversations.Entry]:
        """Return the part of the conversation that it came from."""
        row = self.escalation
        return conversations.around(row.thread, at=self.moment) if row.thread else []

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
    def differing(self) -> list[tuple[str, list[tuple[int, str, bool]]]]:
        """Return the arguments that differ between the attempts."""
        return evidence.differing(self.compared)

    @property
    def effects(self) -> list[Effect]:
        """Return what was sent as a list, for the call that promised it."""
        return [self.sent] if self.sent else []

    @property
    def message(self) -> Message | None:
        """Return the outbox message that it is about."""
        return self.sent.message if self.sent else None

    @cached_property
    def sent(self) -> Effect | None:
        """Return the external effect that it is about."""
        message = Message.objects.filter(id=self.escalation.payload.get("message_id") or 0).first()
        return Effect(message=message) if message else None
