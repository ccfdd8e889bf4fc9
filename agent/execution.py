"""The third phase: one transaction, one savepoint a call, everything or nothing. A preview is the same, ended by ROLLBACK.

In pipeline mode, with savepoints by hand: beginning, look-ups, first savepoint and first statement travel together,
and later statements wait for an answer only where a tool reads one. What a person approved waits once more, for its effects.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, Cursor, Pipeline

from agent import answers, blame, earlier, effects, explanations, preamble, trace, windows
from agent.answers import Answer
from agent.effects import Effects
from agent.failures import Kind, Phase
from agent.plans import Applied, Drifted, Known, Plan, Rehearsed
from agent.trace import Trace
from agent.validation import ValidCall
from ledger import attempts, executions, faults
from ledger.attempts import Attempt
from outbox.messages import Cause

End = TypeVar("End", Applied, Rehearsed)
PREVIEW_LOCK_TIMEOUT = "500ms"  # a preview makes nobody wait for long, and is asked for again
QUEUED = "SELECT EXISTS (SELECT FROM public.outbox_message WHERE thread = %s AND ai_message_id = %s)"


class _AnsweredBefore(Exception):
    """The look-ups found this batch."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known


def run(conn: Connection[Any], attempt: Attempt, *, plan: Plan) -> Applied | Known:
    """Apply the calls in order and commit, or leave nothing behind and raise `blame.Failed` or `Drifted`.

    `conn` is an autocommit connection as the agent login, outside any transaction.
    """
    return _Transaction(conn=conn, attempt=attempt, plan=plan).run(_Transaction.commit)


def rehearse(conn: Connection[Any], attempt: Attempt, *, plan: Plan) -> Rehearsed | Known:
    """Do the same and roll it back, whatever became of it: no row is left, not of the attempt either. Raises `blame.Failed`."""
    transaction = _Transaction(conn=conn, attempt=attempt, plan=plan, rehearsal=True)
    try:
        return transaction.run(_Transaction.roll_back)
    except blame.Failed as failed:
        if failed.kind is not Kind.LIMIT or transaction.effects is None:
            raise
        return Rehearsed(results=transaction.results, effects=transaction.effects, over=failed.detail)


@dataclass(kw_only=True)
class _Transaction:
    """One transaction of a batch, from before its BEGIN to its end."""

    conn: Connection[Any]
    attempt: Attempt
    plan: Plan
    rehearsal: bool = False
    trace: Trace = field(default_factory=Trace)
    results: dict[int, dict[str, Any]] = field(default_factory=dict)
    undone: list[blame.Failed] = field(default_factory=list)  # of a partial batch: the calls that failed
    sentences: dict[int, str] = field(default_factory=dict)
    effects: Effects | None = None
    queued: Cursor[Any] = field(init=False)
    pipeline: Pipeline = field(init=False)
    lookups: earlier.Asked = field(init=False)

    def run(self, end: Callable[["_Transaction"], End]) -> End | Known:
        """Run the calls and end as `end` does; whatever is raised, the connection is idle afterwards."""
        with trace.of(self.conn, self.trace):
            try:
                with self.conn.pipeline() as self.pipeline:
                    return self._guarded(end)
            except (_AnsweredBefore, Drifted, blame.Failed) as found:
                self.conn.execute("ROLLBACK")
                if isinstance(found, _AnsweredBefore):
                    return found.known
                raise
            except Exception as error:
                calls = self.plan.calls
                raise blame.failure(self.conn, self.attempt, trace=self.trace, calls=calls, error=error) from error

    def _guarded(self, end: Callable[["_Transaction"], End]) -> End:
        try:
            self._apply()
            return end(self)
        except Exception:
            # Read every answer that is still under way: an earlier statement's error is the cause and wins.
            with contextlib.suppress(psycopg.Error):  # the trace has kept the first one
                self.pipeline.sync()
            raise

    # -- its two ends --------------------------------------------------------------------------

    def commit(self) -> Applied:
        """Make it last."""
        self._reach("batch.commit")
        commit = self.conn.execute("COMMIT")
        self.pipeline.sync()
        if commit.statusmessage != "COMMIT":
            raise blame.Swallowed("COMMIT answered ROLLBACK")
        self._reach("batch.committed")
        return Applied(results=self.results, told=self._told(), queued=bool((self.queued.fetchone() or [False])[0]))

    def roll_back(self) -> Rehearsed:
        """Leave nothing of it."""
        self.pipeline.sync()
        faults.reach("preview.tried", thread=self.attempt.thread)
        self.conn.execute("ROLLBACK")
        self.pipeline.sync()
        assert self.effects is not None
        return Rehearsed(results=self.results, effects=self.effects)

    # -- everything before its end -------------------------------------------------------------

    def _apply(self) -> None:
        began = monotonic()
        self._begin()
        run_call = self._tolerantly if self.plan.partial and not self.rehearsal else self._call
        for number, call in enumerate(self.plan.calls):
            run_call(call, first=number == 0)
        if self.undone and not self.results:
            raise blame.all_failed(self.undone, self.sentences)
        self.trace.enter(Phase.COMMIT)
        self._look_at_effects()
        self.queued = self.conn.execute(QUEUED, (self.attempt.thread, self.attempt.ai_message_id))
        attempts.close_committed(
            self.conn,
            self.attempt,
            duration_ms=int((monotonic() - began) * 1000),
            told=[answer.row() for answer in self._told()] or None,
            failure=self.undone[0].failure if self.undone else None,
        )
        self._add_to_windows()

    def _begin(self) -> None:
        lock_timeout = PREVIEW_LOCK_TIMEOUT if self.rehearsal else preamble.LOCK_TIMEOUT
        if not self.rehearsal:
            attempts.begin(self.conn, self.attempt)
        self._reach("batch.begin")
        preamble.begin(self.conn, self.attempt, isolation=self.plan.isolation, lock_timeout=lock_timeout)
        self.lookups = earlier.ask(self.conn, self.attempt)

    def _look_at_effects(self) -> None:
        """Read what was done where somebody has to see it; whoever approved something else, or saw nothing, is asked again."""
        permission = self.plan.permission
        if permission is None and not self.rehearsal:
            return
        self.effects = effects.read(self.conn, self.attempt)
        if permission is not None and self.effects.digest != permission.digest:
            raise Drifted(self.effects)

    def _add_to_windows(self) -> None:
        windows.add(
            self.conn,
            self.attempt,
            calls=[call for call in self.plan.calls if call.index in self.results],
            day=self.plan.day,
            limits=self.plan.limits,
            waived=self.plan.permission.waived if self.plan.permission else (),
        )

    def _told(self) -> list[Answer]:
        return answers.particular(self.results, failed=self.sentences, permission=self.plan.permission)

    # -- one call ------------------------------------------------------------------------------

    def _call(self, call: ValidCall, *, first: bool) -> None:
        """Run one call under its savepoint and record it; the first also reads the look-ups, which win over its outcome."""
        self.trace.enter(Phase.CALL, call.index)
        self.conn.execute(blame.savepoint("SAVEPOINT", call.index))
        self.conn.execute("SELECT set_config('backstop.call', %s, true)", (str(call.index),))
        self._reach("batch.savepoint")
        self.trace.enter(Phase.CALL, call.index)  # the tool's own statements count from 1
        self.trace.guarded = True
        try:
            result = call.tool.run(self.conn, call.arguments, self._cause(call))
        finally:
            self.trace.guarded = False
            if first:
                self._stop_if_known()
        if self.trace.failed:
            raise blame.Swallowed(f"{call.tool.name} went on after a database error")
        self._reach("batch.write")
        self.conn.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what is checked late is checked while its call can be named
        self.conn.execute("SET CONSTRAINTS ALL DEFERRED")
        self._record(call, result)
        self._reach("batch.release")
        self.conn.execute(blame.savepoint("RELEASE SAVEPOINT", call.index))
        self.results[call.index] = result

    def _tolerantly(self, call: ValidCall, *, first: bool) -> None:
        """Run one call whose failure undoes nothing but itself; what the model cannot correct still ends the batch."""
        try:
            self._call(call, first=first)
            self.pipeline.sync()  # its errors must come before the next call begins
        except _AnsweredBefore:
            raise
        except Exception as error:
            with contextlib.suppress(psycopg.Error):  # the trace has kept the first one
                self.pipeline.sync()
            failed = blame.of_call(self.trace, call=call, error=error)
            if failed.kind is not Kind.MODEL:
                raise
            self._undo(call, failed)

    def _undo(self, call: ValidCall, failed: blame.Failed) -> None:
        self.results.pop(call.index, None)
        self.trace.forgive()
        self.conn.execute(blame.savepoint("ROLLBACK TO SAVEPOINT", call.index))
        self.conn.execute(blame.savepoint("RELEASE SAVEPOINT", call.index))
        self.pipeline.sync()
        self.undone.append(failed)
        self.sentences[call.index] = explanations.sentence(self.conn, failed, call=call)
        self.trace.forgive()  # of what the explanation asked, which has a savepoint of its own

    def _record(self, call: ValidCall, result: dict[str, Any]) -> None:
        executions.record(
            self.conn,
            self.attempt,
            call_index=call.index,
            tool_call_id=call.id,
            tool=call.tool.name,
            fingerprint=call.fingerprint,
            arguments=call.plain,
            result=result,
        )

    def _cause(self, call: ValidCall) -> Cause:
        a = self.attempt
        return Cause(thread=a.thread, ai_message_id=a.ai_message_id, call_index=call.index, subject=a.subject)

    def _stop_if_known(self) -> None:
        try:
            known = earlier.read(self.lookups)
        except psycopg.Error:
            return  # the beginning itself failed (a lost lease, a timeout); the trace has kept that error
        if known and (known.stored or not self.rehearsal):
            raise _AnsweredBefore(known)

    def _reach(self, point: str) -> None:
        """Come by a fault point of a batch that is to last, with everything that was sent at the server."""

        def arrive() -> None:
            with self.conn.pipeline():  # a pipeline in a pipeline ends with a synchronisation
                pass

        if not self.rehearsal:
            faults.reach(point, thread=self.attempt.thread, first=arrive)
