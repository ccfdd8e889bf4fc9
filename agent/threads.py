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
IS_SILENT = "EXISTS (SELECT FROM public.agent_thread s WHERE s.thread = c.thread AND s.stepped_in_by IS NOT NULL)"
# A reviewer decided that it is gone on with, though nothing in its own rows asks for that.
WANTS_REPLAY = (
    "EXISTS (SELECT FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id"
    " WHERE e.thread = c.thread AND e.interrupt_id IS NULL AND e.state = 'decided' AND d.kind = 'replay_thread')"
)
# What a drive of a waiting thread, and of an idle one, could go on with.
WAITING_CAN_GO_ON = f"((NOT {ASKS_PERSON} AND NOT {IS_SILENT}) OR {WANTS_PREVIEW})"
IDLE_CAN_GO_ON = f"({HAS_QUEUED} AND NOT {IS_SILENT})"
LOOK = f"""
SELECT c.subject, coalesce(t.state, 'idle'), {IDLE_CAN_GO_ON}, {WAITING_CAN_GO_ON}, {ASKS_PERSON},
    {WANTS_REPLAY} AND NOT {IS_SILENT}
FROM public.agent_conversation c LEFT JOIN public.agent_thread t ON t.thread = c.thread
WHERE c.thread = %s
"""  # noqa: S608 - joined from constants


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A conversation's subject, and how its thread stands."""

    subject: int
    state: str  # idle, running, waiting, stuck
    idle_can_go_on: bool  # a message is queued
    waiting_can_go_on: bool  # its question is decided, or a reviewer waits to see what would happen
    asks_person: bool  # an escalation of its interrupt is undecided
    wants_replay: bool  # a reviewer decided that it goes on

    @property
    def needs_drive(self) -> bool:
        """Return whether a drive could do anything. `running` is unfinished work, whoever left it."""
        if self.wants_replay:
            return True
        if self.state == "waiting":
            return self.waiting_can_go_on
        return self.state in ("running", "stuck") or self.idle_can_go_on

    @property
    def activity(self) -> str:
        """Return what a drive begins with, in words for lists."""
        return "Making a preview" if self.state == "waiting" and self.asks_person else "Working"


def look(conn: Connection[Any], *, thread: UUID) -> Standing | None:
    """Return how a thread stands, or None when there is no such conversation."""
    row = conn.execute(LOOK, (thread,)).fetchone()
    names = ("subject", "state", "idle_can_go_on", "waiting_can_go_on", "asks_person", "wants_replay")
    return Standing(**dict(zip(names, row, strict=True))) if row else None


def is_silent(conn: Connection[Any], *, thread: UUID) -> bool:
    """Return whether a person has stepped in: the agent takes neither messages nor decisions until they hand back."""
    row = conn.execute("SELECT FROM public.agent_thread WHERE thread = %s AND stepped_in_by IS NOT NULL", (thread,)).fetchone()
    return row is not None
