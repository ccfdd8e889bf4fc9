"""The only code that touches a thread's graph. Rows say what is to be done; a bell only says: look now."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import psycopg
import structlog
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.types import Command, StateSnapshot

from agent import endings, events, graph, heartbeats, leases, llm, openings, queue, replays, sweep, threads
from agent.budgets import Limits, new_turn
from agent.checkpoints import FencedSaver
from agent.leases import LeaseLost
from agent.llm import Model
from agent.queue import Taken
from agent.runs import ACTIVE, Pool, Run
from agent.state import GRAPH_VERSION
from agent.tools import Tool, registry
from escalations import lifecycle
from ledger import connections, faults

log = structlog.get_logger()

Outcome = Literal["idle", "waiting", "busy", "left", "unknown"]
STEPS = 60  # of the graph in one invocation: above what the budgets of a turn allow
ACTIVITY = 120  # characters of a reason in the list of conversations
ROUNDS = 100  # invocations in one lease: a long queue goes on under the next one


def drive(
    thread: UUID,
    *,
    pool: Pool | None = None,
    model: Model | None = None,
    tools: Mapping[str, Tool] | None = None,
    limits: Limits | None = None,
) -> Outcome:
    """Bring a thread as far as it can go without a person: to idle, or to a question that waits.

    `pool` gives autocommit connections as the agent login. Returns `busy` while another worker has the lease, and `left`
    when the run ended early; the sweeper drives it again. Safe to call at any time, any number of times, anywhere.
    """
    pool = pool or connections.pool()
    more = True
    ended: Outcome = "idle"
    while more:
        with pool.connection() as conn:
            standing = threads.look(conn, thread=thread)
            if standing is None:
                log.warning("agent.thread.unknown", thread=str(thread))
                return "unknown"
            if not standing.needs_drive:
                return "waiting" if standing.state == "waiting" else "idle"
            lease = leases.acquire(conn, thread=thread, graph_version=GRAPH_VERSION, activity=standing.activity)
        if lease is None:
            return "busy"
        faults.reach("run.leased", thread=thread)
        run = Run(
            pool=pool,
            lease=lease,
            subject=standing.subject,
            model=model or llm.installed(),
            tools=tools if tools is not None else registry(),
            limits=limits or Limits(),
        )
        ended, more = _Drive(run=run, replay=standing.wants_replay).outcome()
    return ended


@dataclass(kw_only=True)
class _Drive:
    """One lease's work."""

    run: Run
    replay: bool = False  # a reviewer decided that the thread goes on from where it is
    compiled: graph.Graph = field(init=False)
    decided: bool = field(init=False)  # a decision was taken, here or by a run that ended early

    def __post_init__(self) -> None:
        run = self.run
        self.decided = run.lease.unfinished
        if run.lease.stop_requested:
            run.stop.set()
        self.compiled = graph.with_saver(FencedSaver(run.pool, run.lease, on_lost=run.lost.set))

    @property
    def config(self) -> RunnableConfig:
        """Return a fresh configuration: one that names a checkpoint would replay what came after it."""
        return {
            "configurable": {"thread_id": str(self.run.thread), "__pregel_strict_resume": True},
            "recursion_limit": STEPS,
        }

    def outcome(self) -> tuple[Outcome, bool]:
        """Work under the lease, give it back as the work ended, and say whether there is more to do by now."""
        run = self.run
        events.publish(run.thread, "status")
        ACTIVE.add(run)
        try:
            with heartbeats.of(run.pool).watch(run):
                return self._guarded()
        finally:
            ACTIVE.remove(run)
            events.publish(run.thread, "status")

    def _guarded(self) -> tuple[Outcome, bool]:
        run = self.run
        try:
            return self._released(*self._advance())
        except LeaseLost:
            log.warning("agent.run.lost", thread=str(run.thread), fence=run.lease.fence)
        except GraphDrained as drained:
            self._leave(at_once=True, reason=drained.reason, why="Interrupted")
        except Exception as error:
            log.exception("agent.run.failed", thread=str(run.thread))
            self._leave(at_once=False, reason="failed", why=endings.why(error))
        return "left", False

    def _released(self, state: leases.State, activity: str) -> tuple[Outcome, bool]:
        run = self.run
        faults.reach("run.ended", thread=run.thread)
        with run.pool.connection() as conn:
            if state == "idle" and self.decided:
                lifecycle.mark_done(conn, thread=run.thread)
                sweep.went_on(conn, thread=run.thread)
            if self.replay:
                replays.end(conn, thread=run.thread)
            more = leases.release(conn, run.lease, state=state, activity=activity)
        faults.reach("run.released", thread=run.thread)
        return state, more

    def _leave(self, *, at_once: bool, reason: str, why: str) -> None:
        """Give the lease back with the thread unfinished; when even that fails the lease runs out by itself."""
        run = self.run
        log.info("agent.run.left", thread=str(run.thread), reason=reason)
        try:
            with run.pool.connection(timeout=2) as conn:
                leases.leave(conn, run.lease, at_once=at_once, activity=why)
        except psycopg.Error as error:
            log.warning("agent.lease.kept", thread=str(run.thread), error=type(error).__name__)

    def _advance(self) -> tuple[leases.State, str]:
        """Do the first thing that fits, until nothing does. Returns the thread's state and what lists say about it."""
        if self.run.lease.graph_version != GRAPH_VERSION:
            raise endings.OtherGraph(f"the thread waits in version {self.run.lease.graph_version} of the graph")
        if self.replay:
            replays.retell(self.run, self._snapshot())
        for _ in range(ROUNDS):
            self._check()
            snapshot = self._snapshot()
            if snapshot.interrupts:
                decided = self._decided(snapshot)
                if not decided or not self._resume(decided):
                    return "waiting", self._ask(snapshot)[:ACTIVITY]
            elif snapshot.tasks:  # unfinished, whatever `next` says
                self._invoke(None)
            elif not self._answer_messages(snapshot):
                return "idle", ""
        raise GraphDrained("many questions in one lease")

    def _snapshot(self) -> StateSnapshot:
        try:
            return self.compiled.get_state(self.config)
        except (psycopg.Error, LeaseLost):
            raise
        except Exception as error:
            raise endings.Unreadable from error

    def _answer_messages(self, snapshot: StateSnapshot) -> bool:
        """Take queued messages into the thread, which is finished; return whether one of them ended in a question."""
        taken = self._unseen(snapshot)  # a stop that came since it was taken is meant for it
        for _ in range(ROUNDS):
            if taken is None:
                if (taken := self._take()) is None:
                    return False
                self.run.forget_stop()
            if "__interrupt__" in self._invoke(_input(taken)):
                return True
            self._check()
            taken = None
        raise GraphDrained("many messages in one lease")

    def _check(self) -> None:
        """Raise when the run has to end here. Errors of background writes reach nobody else."""
        if self.run.lost.is_set():
            raise LeaseLost
        if self.run.control.drain_requested:
            raise GraphDrained(self.run.control.drain_reason or "shutdown")

    def _invoke(self, given: Any) -> dict[str, Any]:
        """Run the graph to its end or to a question; anything else is raised."""
        run = self.run
        return self.compiled.invoke(given, self.config, context=run, durability="sync", control=run.control)

    # -- questions and decisions ---------------------------------------------------------------

    def _ask(self, snapshot: StateSnapshot) -> str:
        """Put the questions to people, with the previews that they decide by, and return the last reason."""
        reason = openings.open_all(self.run, snapshot)
        for asked in openings.unmade(self.run):
            self._check()
            openings.make_preview(self.run, snapshot, asked=asked)
        return reason

    def _decided(self, snapshot: StateSnapshot) -> dict[str, dict[str, Any]]:
        with self.run.pool.connection() as conn:
            return lifecycle.decisions_for(conn, interrupt_ids=[item.id for item in snapshot.interrupts])

    def _resume(self, decided: dict[str, dict[str, Any]]) -> bool:
        """Hand the decisions over, unless a person answers instead of the agent; then they wait.

        They stay rows: after a crash before the next checkpoint they are handed over again.
        """
        faults.reach("decision.read", thread=self.run.thread)
        with self.run.pool.connection() as conn, conn.transaction():
            leases.check(conn, self.run.lease)
            if threads.is_silent(conn, thread=self.run.thread):
                return False
            lifecycle.mark_resumed(conn, interrupt_ids=list(decided))
        self.decided = True
        faults.reach("decision.resumed", thread=self.run.thread)
        self._invoke(Command(resume=decided))
        return True

    # -- messages ------------------------------------------------------------------------------

    def _unseen(self, snapshot: StateSnapshot) -> Taken | None:
        """Return the message that a run before took and did not bring into the thread."""
        if not self.run.lease.unfinished:
            return None
        seen = {str(message.id) for message in snapshot.values.get("messages", [])}
        with self.run.pool.connection() as conn:
            return queue.taken_but_unseen(conn, self.run.lease, seen=seen)

    def _take(self) -> Taken | None:
        with self.run.pool.connection() as conn:
            taken = queue.take(conn, self.run.lease)
        if taken is not None:
            faults.reach("run.taken", thread=self.run.thread)
        return taken


def _input(taken: Taken) -> dict[str, Any]:
    """Return what begins a turn."""
    fresh = {"turn": new_turn(), "rollbacks": 0, "question": {}, "decision": {}}
    return fresh | {"messages": [taken.message()], "author": taken.author}
