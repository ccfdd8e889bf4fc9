"""Keeping leases alive: one thread a process for all of its runs, on a connection of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
import structlog
from django.conf import settings
from psycopg import Connection

from agent.runs import Pool, Run
from ledger import connections

log = structlog.get_logger()

LOOK_EVERY = 0.5  # seconds between looks for a lost lease and for a wish to stop
LINGER = 2.0  # seconds that the thread stays when nothing runs

# A row that is locked is locked by a batch or a checkpoint of ours that still runs: it is skipped and tried again at the
# next look. Waiting for it would make the other leases late; taking it for lost would stop a healthy run. A lease that was
# given back since the look began stays given back: renewed, it would keep the thread's next run waiting.
RENEW = """
UPDATE public.agent_thread t SET leased_until = clock_timestamp() + %(seconds)s * interval '1 second'
FROM (
    SELECT a.thread FROM public.agent_thread a
    JOIN unnest(%(threads)s::uuid[], %(fences)s::bigint[]) AS mine (thread, fence) USING (thread, fence)
    WHERE a.leased_until IS NOT NULL
    FOR NO KEY UPDATE OF a SKIP LOCKED
) AS free
WHERE t.thread = free.thread
RETURNING t.thread
"""
LOOK = "SELECT thread, fence, stop_requested_at IS NOT NULL FROM public.agent_thread WHERE thread = ANY(%s)"


class Heartbeat:
    """The leases of one pool's runs."""

    def __init__(self, pool: Pool) -> None:
        # a dead network must not keep the heartbeat waiting longer than a lease lives
        self._address = str(pool.conninfo)
        self._options = connections.arguments() | {"connect_timeout": 5, "tcp_user_timeout": 8000}
        self._runs: dict[int, tuple[Run, float]] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._conn: Connection[Any] | None = None

    @contextmanager
    def watch(self, run: Run) -> Iterator[None]:
        """Keep the run's lease alive inside the block."""
        with self._changed:
            self._runs[id(run)] = (run, monotonic())
            if self._thread is None:
                self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._runs.pop(id(run), None)

    def _beat(self) -> None:
        idle_since = monotonic()
        while True:
            with self._changed:
                self._changed.wait(LOOK_EVERY)
                runs = [run for run, _ in self._runs.values()]
                due = [run for run, renewed in self._runs.values() if monotonic() - renewed >= settings.HEARTBEAT_SECONDS]
                idle_since = monotonic() if runs else idle_since
                if monotonic() - idle_since > LINGER:
                    self._thread = None
                    break
            if runs:
                self._look(runs, due)
        self._close()

    def _look(self, runs: list[Run], due: list[Run]) -> None:
        try:
            if self._conn is None:
                self._conn = psycopg.connect(self._address, **self._options)
            self._renew(self._conn, due)
            self._notice(self._conn, runs)
        except psycopg.Error as error:  # the fence protects the data; the next look tries again
            log.warning("agent.heartbeat.missed", error=type(error).__name__, runs=len(runs))
            self._close()

    def _renew(self, conn: Connection[Any], due: list[Run]) -> None:
        if not due:
            return
        values = {
            "threads": [run.thread for run in due],
            "fences": [run.lease.fence for run in due],
            "seconds": settings.LEASE_SECONDS,
        }
        renewed = {row[0] for row in conn.execute(RENEW, values)}
        with self._changed:
            for run in due:
                if run.thread in renewed and id(run) in self._runs:
                    self._runs[id(run)] = (run, monotonic())

    def _notice(self, conn: Connection[Any], runs: list[Run]) -> None:
        found = {row[0]: row[1:] for row in conn.execute(LOOK, ([run.thread for run in runs],))}
        for run in runs:
            fence, stop = found.get(run.thread, (None, False))
            if fence != run.lease.fence and not run.lost.is_set():
                log.warning("agent.lease.lost", thread=str(run.thread), fence=run.lease.fence)
                run.lost.set()
                run.control.request_drain("the lease was lost")
            elif stop:
                run.stop.set()

    def _close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None


_HEARTBEATS: WeakKeyDictionary[Pool, Heartbeat] = WeakKeyDictionary()
_MAKING = Lock()


def of(pool: Pool) -> Heartbeat:
    """Return this process's heartbeat for the pool."""
    with _MAKING:
        return _HEARTBEATS.setdefault(pool, Heartbeat(pool))
