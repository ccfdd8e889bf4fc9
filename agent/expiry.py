"""What nobody decided in time: the system decides for want of a person, and the thread goes on with that."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from agent import resumption
from escalations import facts, lifecycle
from ledger import faults

AT_ONCE = 100  # escalations in one go; the next one finds the rest
# While every change is paused nobody can approve, so nothing expires, nor for an hour after that. A claim that is valid is a
# person at work.
DUE = """
SELECT e.id, e.thread FROM public.escalations_escalation e
WHERE e.state IN ('open', 'claimed') AND e.expires_at <= now()
  AND NOT (e.state = 'claimed' AND e.claimed_until > now())
  AND NOT EXISTS (
    SELECT FROM (SELECT value, set_at FROM public.agent_policy WHERE rule = 'kill_switch' AND tool = '' ORDER BY id DESC LIMIT 1)
        AS switch
    WHERE switch.value > 0 OR switch.set_at > now() - interval '1 hour')
ORDER BY e.expires_at LIMIT %s
"""


def expire(conn: Connection[Any]) -> list[UUID]:
    """Let what is overdue expire, each in its own transaction, and return the threads to ring for."""
    due = conn.execute(DUE, (AT_ONCE,)).fetchall()
    return [thread for escalation, thread in due if _expired(conn, escalation) and thread is not None]


def _expired(conn: Connection[Any], escalation: int) -> bool:
    try:
        decision = lifecycle.expire(conn, escalation=escalation, text=resumption.EXPIRED)
    except facts.AlreadyDecided:
        return False  # by a person, in time
    faults.reach("expiry.decided", thread=decision.thread)
    return True
