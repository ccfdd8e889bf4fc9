"""The verbs of a message: enqueue, claim, begin_send, settle, reschedule and the rest, one SQL statement each."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The tool call that asked for an effect; all None for an effect without one."""

    thread: UUID | None = None
    ai_message_id: str | None = None
    call_index: int | None = None
    subject: int | None = None
