"""Who may run a thread: a lease on the database's clock, with a fence that rises with every acquisition."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from langgraph.errors import GraphBubbleUp
from psycopg import Connection, errors

from agent import events, threads

LOCK_WAIT = "2s"  # a lease is never worth a long wait: the row is locked by a batch that still runs
CAP = 8  # drives without progress, then the sweeper gives up
State = Literal["idle", "waiting"]
FENCE = "SELECT public.agent_fence(%s, %s)"
# For what may be lost with the server's last moments, because whoever comes after does it again.
UNHURRIED = "SELECT set_config('synchronous_commit', 'off', true)"


class LeaseLost(GraphBubbleUp):
    """Another worker owns the thread now; this one can change nothing more. Neither retried nor recorded."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """One acquisition. Every write of the run names its fence."""

    thread: UUID
    fence: int
    stop_requested: bool = False
    graph_version: int = 1
    unfinished: bool = False  # the run before did not end by itself: something of it may be half done


# The clock is read after the row's lock was waited for. A request to stop outlives a crash, never the turn it was meant for.
ACQUIRE = f"""
WITH taken AS (
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
    stop_requested_at = CASE WHEN t.state IN ('running', 'stuck') THEN t.stop_requested_at END,
    stop_requested_by = CASE WHEN t.state IN ('running', 'stuck') THEN t.stop_requested_by END
WHERE t.leased_until IS NULL OR t.leased_until < clock_timestamp()
RETURNING thread, fence, stop_requested_at IS NOT NULL AS stop, graph_version, sweeps
), {events.emitted_for("taken", kind="status")}
SELECT fence, stop, graph_version, sweeps > 1 FROM taken
"""  # noqa: S608 - joined from constants
# The answer says whether there is more to do: asked in this very statement, because whoever was told "busy" just before it
# has committed what it rang for.
RELEASE = f"""
WITH given_back AS (
UPDATE public.agent_thread t SET lease_owner = NULL, leased_until = NULL, state = %(state)s, activity = %(activity)s, sweeps = 0,
    next_sweep_at = clock_timestamp(), progressed_at = clock_timestamp(), stop_requested_at = NULL, stop_requested_by = NULL
WHERE thread = %(thread)s AND fence = %(fence)s
RETURNING t.thread
), {events.emitted_for("given_back", kind="status")}
SELECT CASE WHEN %(state)s = 'waiting' THEN {threads.WAITING_CAN_GO_ON} ELSE {threads.IDLE_CAN_GO_ON} END
FROM given_back AS c
"""  # noqa: S608
# The sweeper drives it again, not before `next_sweep_at`; `sweeps` keeps counting.
LEAVE = f"""
WITH left_alone AS (
UPDATE public.agent_thread SET lease_owner = NULL, leased_until = NULL, activity = %(activity)s,
    next_sweep_at = CASE WHEN %(at_once)s THEN clock_timestamp() ELSE next_sweep_at END,
    sweeps = CASE WHEN %(at_once)s THEN 1 ELSE sweeps END
WHERE thread = %(thread)s AND fence = %(fence)s
RETURNING thread
), {events.emitted_for("left_alone", kind="status")}
SELECT FROM left_alone
"""  # noqa: S608


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
        with conn.pipeline():  # one implicit transaction, one round trip
            conn.execute("SELECT set_config('lock_timeout', %s, true)", (LOCK_WAIT,))
            row = conn.execute(ACQUIRE, values).fetchone()
    except errors.LockNotAvailable:
        return None
    return row and Lease(thread=thread, fence=row[0], stop_requested=row[1], graph_version=row[2], unfinished=row[3])


@contextmanager
def fenced(conn: Connection[Any], lease: Lease) -> Iterator[None]:
    """Make the block one transaction, sent at once, that begins with the fence; raises LeaseLost at its end."""
    with translated(), conn.pipeline():
        conn.execute(FENCE, (lease.thread, lease.fence))
        yield


def check(conn: Connection[Any], lease: Lease) -> None:
    """Hold the lease for the rest of the transaction; raise LeaseLost when it is another worker's."""
    with translated():
        conn.execute(FENCE, (lease.thread, lease.fence))


@contextmanager
def translated() -> Iterator[None]:
    """Raise LeaseLost for the database's word for it."""
    try:
        yield
    except errors.Error as error:
        if error.sqlstate == "BS001":
            raise LeaseLost from error
        raise


def release(conn: Connection[Any], lease: Lease, *, state: State, activity: str = "") -> bool:
    """Give the lease back after progress, and return whether there is more to do by now. Raises LeaseLost."""
    given = {"thread": lease.thread, "fence": lease.fence, "state": state, "activity": activity}
    with conn.pipeline():
        conn.execute(UNHURRIED)  # a lease that is not given back runs out
        row = conn.execute(RELEASE, given).fetchone()
    if row is None:
        raise LeaseLost
    return bool(row[0])


def leave(conn: Connection[Any], lease: Lease, *, at_once: bool, activity: str = "Interrupted") -> None:
    """Give the lease back with the thread unfinished; the sweeper drives it again, at once or after its back-off."""
    conn.execute(LEAVE, {"thread": lease.thread, "fence": lease.fence, "activity": activity, "at_once": at_once})


def owner() -> str:
    """Return a name for this process, for people who look for it."""
    return f"{socket.gethostname()}:{os.getpid()}"
