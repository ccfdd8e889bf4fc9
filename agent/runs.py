"""One stretch of driving a thread under one lease: what its nodes need and must not remember."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any
from uuid import UUID

from django.utils import timezone
from langgraph.runtime import RunControl
from psycopg import Connection
from psycopg_pool import ConnectionPool

from agent import prompt
from agent.budgets import Limits
from agent.leases import Lease
from agent.llm import Model
from agent.tools import Tool
from ledger import wiring

Pool = ConnectionPool[Connection[Any]]

STOPPED_BY = """
SELECT coalesce(u.username, 'a staff member') || CASE WHEN t.stepped_in_by IS NOT NULL THEN ', who stepped in' ELSE '' END
FROM public.agent_thread t LEFT JOIN public.auth_user u ON u.id = coalesce(t.stepped_in_by, t.stop_requested_by)
WHERE t.thread = %s AND t.stop_requested_at IS NOT NULL
"""
FORGET_STOP = """
UPDATE public.agent_thread SET stop_requested_at = NULL, stop_requested_by = NULL
WHERE thread = %s AND fence = %s AND stepped_in_by IS NULL
"""


@dataclass(kw_only=True)
class Run:
    """The context of every node."""

    pool: Pool
    lease: Lease
    subject: int
    model: Model
    tools: Mapping[str, Tool]
    limits: Limits = field(default_factory=Limits)
    control: RunControl = field(default_factory=RunControl)
    stop: Event = field(default_factory=Event)  # staff asked for it
    lost: Event = field(default_factory=Event)  # another worker has the lease
    facts: list[str] | None = None

    @property
    def thread(self) -> UUID:
        """Return the thread that is driven."""
        return self.lease.thread

    def system_prompt(self) -> str:
        """Return the system prompt with the facts of the customer, read once a run, and of today."""
        if self.facts is None:
            with self.pool.connection() as conn, conn.pipeline():
                self.facts = wiring.plugged("BACKSTOP_SUBJECTS").prompt_lines(conn, self.subject)
        return prompt.system().with_facts(self.facts, today=timezone.localdate())

    def stopped_by(self) -> str | None:
        """Return the name of the staff member who asked for a stop of this turn, or None."""
        if not self.stop.is_set():
            return None
        with self.pool.connection() as conn:
            row = conn.execute(STOPPED_BY, (self.thread,)).fetchone()
        if row is None:
            self.stop.clear()  # it was meant for a turn that has ended
        return str(row[0]) if row else None

    def forget_stop(self) -> None:
        """Begin the next turn without the wish that ended the last one; who stepped in meanwhile stops this one too."""
        if self.stop.is_set():
            with self.pool.connection() as conn:
                forgotten = conn.execute(FORGET_STOP, (self.thread, self.lease.fence)).rowcount
            if forgotten:
                self.stop.clear()


class ActiveRuns:
    """The runs of this process, so that a shutdown can ask all of them to end at the next safe point."""

    def __init__(self) -> None:
        self._controls: dict[int, RunControl] = {}
        self._lock = Lock()
        self._draining = False

    def add(self, run: Run) -> None:
        """Count the run in; when the process is shutting down it is asked to end at once."""
        with self._lock:
            self._controls[id(run)] = run.control
            if self._draining:
                run.control.request_drain("shutdown")

    def remove(self, run: Run) -> None:
        """Count the run out."""
        with self._lock:
            self._controls.pop(id(run), None)

    def drain(self) -> int:
        """Ask every run, and every later one, to end at the next safe point; return how many were running."""
        with self._lock:
            self._draining = True
            for control in self._controls.values():
                control.request_drain("shutdown")
            return len(self._controls)


ACTIVE = ActiveRuns()
