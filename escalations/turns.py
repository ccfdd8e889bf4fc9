"""What the agent tried for one request of a staff member."""

from datetime import datetime
from typing import Any
from uuid import UUID

from escalations import conversations
from ledger import evidence, numbering
from ledger.evidence import Evidence
from outbox.models import Message


def attempts(thread: UUID, *, at: datetime, request: Any, until: datetime | None, about: Message | None) -> list[Evidence]:
    """Return the attempts at the request that was worked on at that time: the cause of the message first, then the newest.

    They carry the numbers that the conversation shows. None is later than the next request, or than `until`.
    """
    since = request.taken_at if request else None
    ends = [end for end in (conversations.next_asked_at(thread, after=at), until) if end]
    found = evidence.of_thread(thread, since=since, until=min(ends, default=None))
    counted = numbering.numbered(found, restarts=conversations.answered_at(thread, since=since))[::-1]
    return sorted(counted, key=lambda item: not is_cause(item, of=about))


def is_cause(item: Evidence, *, of: Message | None) -> bool:
    """Return whether the attempt queued the message."""
    return bool(of and item.result == "committed" and item.row.ai_message_id == of.ai_message_id)
