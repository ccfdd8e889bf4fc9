"""What people allowed, read from their decisions: a thread's state names a decision, it never carries its authority."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

# An approval is for one step of one thread in one generation; named anywhere else it allows nothing.
WAIVED = """
SELECT d.waived FROM public.escalations_decision d JOIN public.escalations_escalation e ON e.id = d.escalation_id
WHERE d.id = ANY(%s) AND d.kind = 'approve' AND e.thread = %s AND e.ai_message_id = %s AND e.generation = %s
ORDER BY d.id
"""


def waived(
    conn: Connection[Any], *, decisions: Sequence[int], thread: UUID, ai_message_id: str, generation: int
) -> tuple[dict[str, Any], ...]:
    """Return the verdicts that these decisions waive for this step."""
    rows = conn.execute(WAIVED, (list(decisions), thread, ai_message_id, generation)).fetchall()
    return tuple(verdict for row in rows for verdict in row[0])
