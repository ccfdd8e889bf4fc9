"""Replaying a conversation because a reviewer decided so: its unfinished step runs again, and what it knows is told again.

What the step has done already is answered by the ledger, never done twice.
"""

from typing import Any
from uuid import UUID

from langgraph.types import StateSnapshot
from psycopg import Connection

from agent import events, leases, transcript
from agent.runs import Run
from outbox import bell

TAKEN = """
UPDATE public.escalations_escalation e SET state = 'resumed', resumed_at = now() FROM public.escalations_decision d
WHERE e.thread = %s AND e.state = 'decided' AND e.interrupt_id IS NULL AND d.escalation_id = e.id AND d.kind = 'replay_thread'
RETURNING e.id
"""


def retell(run: Run, snapshot: StateSnapshot) -> None:
    """Write the rows of everything that the thread remembers: one that was lost is there again."""
    rows = transcript.changed(snapshot.values.get("messages", []), known={}, thread=run.thread)
    with run.pool.connection() as conn, conn.transaction():
        leases.check(conn, run.lease)
        with conn.cursor() as cursor:
            transcript.write(cursor, rows)
        events.emit(conn, thread=run.thread, kind="feed")


def end(conn: Connection[Any], *, thread: UUID) -> bool:
    """Note that the thread was replayed, as far as it went, and return whether anybody had decided so."""
    taken = bool(conn.execute(TAKEN, (thread,)).fetchall())
    if taken:  # whether both sides agree now is for a scan to say; it comes by itself, too
        bell.ring("outbox.reconcile")
    return taken
