"""What a thread takes of the decisions that it waited for, and how its escalations end with it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from escalations import policies


def decisions_for(conn: Connection[Any], *, interrupt_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what waiting interrupts are resumed with, by interrupt id; an undecided one is not in it."""
    found = conn.execute(
        "SELECT e.interrupt_id, d.id, d.kind, d.text, d.decided_by, coalesce(u.username, 'the system'), r.number"
        " FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id"
        " LEFT JOIN public.escalations_revision r ON r.id = d.revision_id"
        " LEFT JOIN public.auth_user u ON u.id = d.decided_by WHERE e.interrupt_id = ANY(%s)",
        (list(interrupt_ids),),
    ).fetchall()
    names = ("decision", "kind", "text", "decided_by", "name", "revision")
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in found}


def mark_resumed(conn: Connection[Any], *, interrupt_ids: Sequence[str]) -> None:
    """Note that the thread took these decisions; an expired escalation stays expired."""
    conn.execute(
        "UPDATE public.escalations_escalation"
        " SET resumed_at = now(), state = CASE state WHEN 'decided' THEN 'resumed' ELSE state END"
        " WHERE interrupt_id = ANY(%s) AND resumed_at IS NULL AND state = ANY(%s)",
        (list(interrupt_ids), policies.sources("resume")),
    )


def mark_done(conn: Connection[Any], *, thread: UUID) -> None:
    """Close the escalations whose decision the thread took and is finished with."""
    conn.execute(
        "UPDATE public.escalations_escalation SET state = 'done', closed_at = now() WHERE thread = %s AND state = 'resumed'",
        (thread,),
    )
