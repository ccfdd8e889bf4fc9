"""Putting the questions of a thread to people: one escalation for each interrupt that waits."""

from typing import Any

from langgraph.types import StateSnapshot
from psycopg import Connection

from agent import events, leases, policies
from agent.runs import Run
from escalations import lifecycle
from ledger import faults


def open_all(run: Run, snapshot: StateSnapshot) -> str:
    """Open an escalation for each question that has none, and return the last reason. Raises LeaseLost."""
    reason = ""
    faults.reach("question.asked", thread=run.thread)
    for item in snapshot.interrupts:
        reason = item.value["reason"]
        with run.pool.connection() as conn, conn.transaction():
            leases.check(conn, run.lease)
            _open(conn, run, interrupt_id=item.id, question=item.value, requested_by=snapshot.values["author"])
    faults.reach("question.opened", thread=run.thread)
    events.publish(run.thread, "escalation")
    return reason


def _open(conn: Connection[Any], run: Run, *, interrupt_id: str, question: dict[str, Any], requested_by: int) -> None:
    lifecycle.open(
        conn,
        kind=question["kind"],
        object=f"thread:{run.thread}",
        payload=question,
        thread=run.thread,
        interrupt_id=interrupt_id,
        subject=run.subject,
        requested_by=requested_by,
        ai_message_id=question["ai_message_id"],
        generation=question["generation"],
        calls=question["calls"] if question["kind"] == "approval" else None,
        verdicts=question["verdicts"],
        policy_version=policies.version(conn),
    )
