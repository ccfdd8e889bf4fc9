"""Who may run a thread: a lease on the database's clock, with a fence that rises with every acquisition."""

import os
import socket
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from langgraph.errors import GraphBubbleUp
from psycopg import Connection, errors

from agent import events

LOCK_WAIT = "2s"  # a lease is never worth a long wait: the row is locked by a batch that still runs
CAP = 8  # drives without progress, then the sweeper gives up
State = Literal["idle", "running", "waiting"]


class LeaseLost(GraphBubbleUp):
    """Another worker owns the thread now; this one can change nothing more. Neither retried nor recorded."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """One acquisition. Every write of the run names its fence."""

    thread: UUID
    fence: int
    stop_requested: bool = False
    graph_version: int = 1


# The clock is read after the row's lock was waited for. A request to stop outlives a crash, never the turn it was meant for.
ACQUIRE = """
INSERT INTO public.agent_thread AS t
    (thread, fence, lease_owner, leased_until, state, activity, graph_version, sweeps, next_sweep_at)
VALUES (%(thread)s, 1, %(owner)s, clock_timestamp() + %(seconds)s * interval '1 second', 'running', %(activity)s, %(version)s,
    1, clock_timestamp())
ON CONFLICT (thread) DO UPDATE SET
    fence = t.fence + 1,
    lease_owner = excluded.lease_owner,
    leased_until = clock_timestamp() + %(seconds)s * interval '1 second',
    state = 'running',
    activity = excluded.activity,
    graph_version = CASE WHEN t.state = 'idle' THEN excluded.graph_version ELSE t.graph_version END,
    sweeps = t.sweeps + 1,
    next_sweep_at = clock_timestamp() + least(5 * 2 ^ least(t.sweeps, 10), 300) * interval '1 second',
    stop_requested_at = CASE WHEN t.state = 'running' THEN t.stop_requested_at END,
    stop_requested_by = CASE WHEN t.state = 'running' THEN t.stop_requested_by END
WHERE t.leased_until IS NULL OR t.leased_until < clock_timestamp()
RETURNING fence, stop_requested_at IS NOT NULL, graph_version
"""
RELEASE = """
UPDATE public.agent_thread SET lease_owner = NULL, leased_until = NULL, state = %(state)s, activity = %(activity)s, sweeps = 0,
    next_sweep_at = clock_timestamp(), progressed_at = clock_timestamp(), stop_requested_at = NULL, stop_requested_by = NULL
WHERE thread = %(thread)s AND fence = %(fence)s
"""
# The sweeper drives it again, not before `next_sweep_at`; `sweeps` keeps counting.
LEAVE = """
UPDATE public.agent_thread SET lease_owner = NULL, leased_until = NULL, activity = %(activity)s,
    next_sweep_at = CASE WHEN %(at_once)s THEN clock_timestamp() ELSE next_sweep_at END,
    sweeps = CASE WHEN %(at_once)s THEN 0 ELSE sweeps END
WHERE thread = %(thread)s AND fence = %(fence)s
"""


def acquire(conn: Connection[Any], *, thread: UUID, graph_version: int = 1, activity: str = "Working") -> Lease | None:
    """Take the thread's lease for settings.LEASE_SECONDS, or return None while another worker has it.

    An idle thread moves to this worker's version of the graph; any other keeps the one it waits in.
    """
    values = {
        "thread": thread,
        "owner": owner(),
        "seconds": settings.LEASE_SECONDS,
        "activity": activity,
        "version": graph_version,
    }
    try:
        with conn.transaction():
            conn.execute("SELECT set_config('lock_timeout', %s, true)", (LOCK_WAIT,))
            row = conn.execute(ACQUIRE, values).fetchone()
            if row is None:
                return None
            events.emit(conn, thread=thread, kind="status")
    except errors.LockNotAvailable:
        return None
    return Lease(thread=thread, fence=row[0], stop_requested=row[1], graph_version=row[2])


def check(conn: Connection[Any], lease: Lease) -> None:
    """Hold the lease for the rest of the transaction; raise LeaseLost when it is another worker's."""
    try:
        conn.execute("SELECT public.agent_fence(%s, %s)", (lease.thread, lease.fence))
    except errors.Error as error:
        if error.sqlstate == "BS001":
            raise LeaseLost from error
        raise


def release(conn: Connection[Any], lease: Lease, *, state: State, activity: str = "") -> None:
    """Give the lease back after progress; nothing happens when it is another worker's by now."""
    _give_back(conn, lease, RELEASE, {"state": state, "activity": activity})


def leave(conn: Connection[Any], lease: Lease, *, at_once: bool, activity: str = "Interrupted") -> None:
    """Give the lease back with the thread unfinished; the sweeper drives it again, at once or after its back-off."""
    _give_back(conn, lease, LEAVE, {"activity": activity, "at_once": at_once})


def _give_back(conn: Connection[Any], lease: Lease, statement: str, values: dict[str, Any]) -> None:
    with conn.transaction():
        done = conn.execute(statement, values | {"thread": lease.thread, "fence": lease.fence})
        if done.rowcount:
            events.emit(conn, thread=lease.thread, kind="status")


def owner() -> str:
    """Return a name for this process, for people who look for it."""
    return f"{socket.gethostname()}:{os.getpid()}"
