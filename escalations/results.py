"""What came of a decision: the attempts that it led to, and what they sent."""

from collections.abc import Iterable

from escalations import conversations
from escalations.models import Escalation
from ledger import evidence
from ledger.evidence import Evidence
from outbox.effects import Effect
from outbox.models import Message


def attempts(row: Escalation) -> list[Evidence]:
    """Return the attempts between the decision and the next staff message, newest first."""
    if row.thread is None or row.decided_at is None or row.interrupt_id is None:
        return []
    until = conversations.next_asked_at(row.thread, after=row.decided_at)
    return evidence.of_thread(row.thread, since=row.decided_at, until=until)


def effects(row: Escalation, *, attempts: Iterable[Evidence]) -> list[Effect]:
    """Return the external effects that these attempts promised, oldest first."""
    batches = {item.row.ai_message_id for item in attempts if item.result == "committed"}
    if not batches:
        return []
    found = Message.objects.filter(thread=row.thread, ai_message_id__in=batches).order_by("id")
    return [Effect(message=message) for message in found]
