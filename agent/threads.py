"""What the rows say about a thread before anybody takes its lease: is there anything to do?"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

# All are about a row `c` with a column `thread`.
HAS_QUEUED = "EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = c.thread AND m.state = 'queued')"
ASKS_PERSON = (
    "EXISTS (SELECT FROM public.escalations_escalation e"
    " WHERE e.thread = c.thread AND e.interrupt_id IS NOT NULL AND e.state IN ('open', 'claimed'))"
)
WANTS_PREVIEW = (
    "EXISTS (SELECT FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id"
    " JOIN public.escalations_escalation e ON e.id = r.escalation_id WHERE p.made_at IS NULL"
    " AND e.thread = c.thread AND e.interrupt_id IS NOT NULL AND e.state IN ('open', 'claimed'))"
)
LOOK = f"""
SELECT c.subject, coalesce(t.state, 'idle'), {HAS_QUEUED}, {ASKS_PERSON}, {WANTS_PREVIEW}
FROM public.agent_conversation c LEFT JOIN public.agent_thread t ON t.thread = c.thread
WHERE c.thread = %s
"""  # noqa: S608 - joined from constants


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A conversation's subject, and how its thread stands."""

    subject: int
    state: str  # idle, running, waiting, stuck
    has_queued: bool
    asks_person: bool  # an escalation of its interrupt is undecided
    wants_preview: bool  # a reviewer waits to see what would happen

    @property
    def needs_drive(self) -> bool:
        """Return whether a drive could do anything. `running` is unfinished work, whoever left it."""
        if self.state == "waiting":
            return not self.asks_person or self.wants_preview
        return self.state in ("running", "stuck") or self.has_queued

    @property
    def activity(self) -> str:
        """Return what a drive begins with, in words for lists."""
        return "Making a preview" if self.state == "waiting" and self.asks_person else "Working"


def look(conn: Connection[Any], *, thread: UUID) -> Standing | None:
    """Return how a thread stands, or None when there is no such conversation."""
    row = conn.execute(LOOK, (thread,)).fetchone()
    return row and Standing(subject=row[0], state=row[1], has_queued=row[2], asks_person=row[3], wants_preview=row[4])
