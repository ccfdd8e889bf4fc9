"""Finding threads that nobody drives although there is something to do: after a crash, a lost bell, a lost broker."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from agent import endings, events, replays, threads
from agent.leases import CAP
from escalations import lifecycle

AT_ONCE = 200  # threads in one sweep; the next one finds the rest
REASON = "The conversation could not go on after {sweeps} tries. The last one: {why} What was applied stays applied."

# What needs a drive, by rows alone; the driver looks at the checkpoint. A waiting thread whose question is undecided does
# not, unless a reviewer waits for a preview. `next_sweep_at` spaces the drives of a thread that makes no progress, and of one
# whose bell was just rung.
DUE = f"""
WITH due AS (
    SELECT c.thread, c.sweeps FROM public.agent_thread c
    WHERE c.state <> 'idle' AND c.state <> 'stuck' AND c.next_sweep_at <= now()
      AND (c.leased_until IS NULL OR c.leased_until < now())
      AND (c.state = 'running' OR {threads.WAITING_CAN_GO_ON})
    UNION
    SELECT c.thread, c.sweeps FROM public.agent_thread c
    WHERE c.state = 'idle' AND c.next_sweep_at <= now() AND {threads.IDLE_CAN_GO_ON}
    UNION
    SELECT c.thread, 0 FROM public.escalations_escalation asked
    JOIN public.escalations_decision d ON d.escalation_id = asked.id AND d.kind = 'replay_thread'
    JOIN public.agent_thread c ON c.thread = asked.thread
    WHERE asked.state = 'decided' AND asked.interrupt_id IS NULL AND c.next_sweep_at <= now()
      AND (c.leased_until IS NULL OR c.leased_until < now()) AND NOT {threads.IS_SILENT}
), free AS (
    SELECT thread FROM public.agent_thread WHERE thread IN (SELECT thread FROM due) ORDER BY thread LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE public.agent_thread t SET next_sweep_at = now() + least(5 * 2 ^ least(t.sweeps, 10), 300) * interval '1 second'
FROM free WHERE t.thread = free.thread
RETURNING t.thread, t.sweeps
"""  # noqa: S608 - joined from constants
NEW = """
SELECT DISTINCT m.thread FROM public.agent_staff_message m
WHERE m.state = 'queued' AND NOT EXISTS (SELECT FROM public.agent_thread t WHERE t.thread = m.thread)
LIMIT %(most)s
"""
# Whoever left the lease said why; whoever died in it did not.
GIVE_UP = """
WITH last AS (
    SELECT thread, CASE WHEN leased_until IS NULL THEN activity ELSE %(died)s END AS why FROM public.agent_thread
    WHERE thread = %(thread)s AND sweeps >= %(cap)s AND (leased_until IS NULL OR leased_until < now()) FOR UPDATE
)
UPDATE public.agent_thread t SET state = 'stuck', activity = 'Could not go on', leased_until = NULL, lease_owner = NULL
FROM last WHERE t.thread = last.thread
RETURNING last.why
"""
WENT_ON = "The conversation went on and came to its end."
ABOUT = """
SELECT c.subject, (SELECT m.author FROM public.agent_staff_message m
                   WHERE m.thread = c.thread AND m.state <> 'cancelled' ORDER BY m.number DESC LIMIT 1)
FROM public.agent_conversation c WHERE c.thread = %s
"""


def sweep(conn: Connection[Any]) -> list[UUID]:
    """Return the threads to ring for, and put those that made no progress too often before a person."""
    due = conn.execute(DUE, {"most": AT_ONCE}).fetchall()
    new = conn.execute(NEW, {"most": AT_ONCE}).fetchall()
    for thread, sweeps in due:
        if sweeps >= CAP:
            give_up(conn, thread=thread, sweeps=sweeps)
    return [row[0] for row in new] + [thread for thread, sweeps in due if sweeps < CAP]


def give_up(conn: Connection[Any], *, thread: UUID, sweeps: int) -> None:
    """Mark the thread stuck and open an escalation; *Resume* on its page, or a new message, drives it again."""
    with conn.transaction():
        given_up = conn.execute(GIVE_UP, {"thread": thread, "cap": CAP, "died": endings.DIED}).fetchone()
        if given_up is None:
            return
        subject, author = conn.execute(ABOUT, (thread,)).fetchone() or (None, None)
        lifecycle.open(
            conn,
            kind="infrastructure",
            object=stuck(thread),
            payload={"reason": REASON.format(sweeps=sweeps, why=given_up[0]), "phase": "before_answers", "calls": []},
            thread=thread,
            subject=subject,
            requested_by=author,
        )
        replays.end(conn, thread=thread)
        events.emit(conn, thread=thread, kind="status")


def went_on(conn: Connection[Any], *, thread: UUID) -> None:
    """Tell who is asked about a stuck thread that it is not stuck any more: a run of it came to its end."""
    lifecycle.settle(conn, object=stuck(thread), text=WENT_ON)


def stuck(thread: UUID) -> str:
    """Return what an escalation about a stuck thread is about."""
    return f"stuck:{thread}"
