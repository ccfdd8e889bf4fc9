"""The third phase: one transaction, one savepoint a call, everything or nothing.

In pipeline mode, with savepoints by hand: beginning, look-ups, first savepoint and first statement travel together,
and later statements wait for an answer only where a tool reads one.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import Any

import psycopg
from psycopg import Connection, Cursor, Pipeline

from agent import blame, preamble, windows
from agent.failures import Phase
from agent.trace import CursorFactory, Trace
from agent.validation import ValidCall
from ledger import aborts, attempts, executions, faults
from ledger.attempts import Attempt
from ledger.executions import Stored
from outbox.messages import Cause

QUEUED = "SELECT EXISTS (SELECT FROM public.outbox_message WHERE thread = %s AND ai_message_id = %s)"


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The batch committed."""

    results: dict[int, dict[str, Any]]
    queued: bool  # an outbox message was committed with it


@dataclass(frozen=True, kw_only=True)
class Known:
    """The batch was answered before: by executions, or by an abort's answers."""

    stored: list[Stored]
    told: list[dict[str, Any]] | None


class _AnsweredBefore(Exception):
    """The look-ups found this batch."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known


def run(conn: Connection[Any], attempt: Attempt, *, calls: Sequence[ValidCall], day: date) -> Applied | Known:
    """Apply the calls in order and commit, or leave nothing behind and raise `blame.Failed`.

    `conn` is an autocommit connection as the agent login, outside any transaction; `day` is today in the
    installation's zone.
    """
    trace = Trace()
    with _traced(conn, trace):
        try:
            with conn.pipeline() as pipeline:
                return _attempt(conn, pipeline, attempt, calls=calls, day=day, trace=trace)
        except _AnsweredBefore as found:
            conn.execute("ROLLBACK")
            return found.known
        except Exception as error:
            raise blame.failure(conn, attempt, trace=trace, calls=calls, error=error) from error


@contextlib.contextmanager
def _traced(conn: Connection[Any], trace: Trace) -> Iterator[None]:
    usual = conn.cursor_factory
    conn.cursor_factory = CursorFactory(trace)  # type: ignore[assignment]  # called like a class, reports to the trace
    conn.add_notice_handler(trace.heard)
    try:
        yield
    finally:
        conn.remove_notice_handler(trace.heard)
        conn.cursor_factory = usual


def _attempt(
    conn: Connection[Any], pipeline: Pipeline, attempt: Attempt, *, calls: Sequence[ValidCall], day: date, trace: Trace
) -> Applied:
    try:
        return _apply(conn, pipeline, attempt, calls=calls, day=day, trace=trace)
    except Exception:
        # Read every answer that is still under way: an earlier statement's error is the cause and wins.
        with contextlib.suppress(psycopg.Error):  # the trace has kept the first one
            pipeline.sync()
        raise


def _apply(
    conn: Connection[Any], pipeline: Pipeline, attempt: Attempt, *, calls: Sequence[ValidCall], day: date, trace: Trace
) -> Applied:
    began = monotonic()
    attempts.begin(conn, attempt)
    _reach("batch.begin", conn, attempt)
    preamble.begin(conn, attempt, isolation=_isolation(calls))
    lookups = executions.look_up(conn, attempt), aborts.look_up(conn, attempt)
    results = {call.index: _call(conn, attempt, call=call, trace=trace, lookups=lookups) for call in calls}
    trace.enter(Phase.COMMIT)
    windows.add(conn, attempt, totals=windows.sums(calls), day=day)
    queued = conn.execute(QUEUED, (attempt.thread, attempt.ai_message_id))
    attempts.close_committed(conn, attempt, duration_ms=int((monotonic() - began) * 1000))
    _reach("batch.commit", conn, attempt)
    commit = conn.execute("COMMIT")
    pipeline.sync()
    if commit.statusmessage != "COMMIT":
        raise blame.Swallowed("COMMIT answered ROLLBACK")
    _reach("batch.committed", conn, attempt)
    return Applied(results=results, queued=bool((queued.fetchone() or [False])[0]))


def _isolation(calls: Sequence[ValidCall]) -> str:
    return "serializable" if any(call.tool.isolation == "serializable" for call in calls) else "read committed"


def _call(
    conn: Connection[Any],
    attempt: Attempt,
    *,
    call: ValidCall,
    trace: Trace,
    lookups: tuple[Cursor[Any], Cursor[Any]],
) -> dict[str, Any]:
    """Run one call under its savepoint and record it; the first also reads the look-ups, which win over its outcome."""
    trace.enter(Phase.CALL, call.index)
    conn.execute(blame.savepoint("SAVEPOINT", call.index))
    conn.execute("SELECT set_config('backstop.call', %s, true)", (str(call.index),))
    _reach("batch.savepoint", conn, attempt)
    trace.enter(Phase.CALL, call.index)  # the tool's own statements count from 1
    trace.guarded = True
    try:
        result = call.tool.run(conn, call.arguments, _cause(attempt, call))
    finally:
        trace.guarded = False
        if call.index == 0:
            _stop_if_known(lookups)
    if trace.failed:
        raise blame.Swallowed(f"{call.tool.name} went on after a database error")
    _reach("batch.write", conn, attempt)
    conn.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what is checked late is checked while its call can be named
    conn.execute("SET CONSTRAINTS ALL DEFERRED")
    executions.record(
        conn,
        attempt,
        call_index=call.index,
        tool_call_id=call.id,
        tool=call.tool.name,
        fingerprint=call.fingerprint,
        arguments=call.plain,
        result=result,
    )
    _reach("batch.release", conn, attempt)
    conn.execute(blame.savepoint("RELEASE SAVEPOINT", call.index))
    return result


def _reach(point: str, conn: Connection[Any], attempt: Attempt) -> None:
    """Come by a fault point, with everything that was sent at the server."""

    def arrive() -> None:
        with conn.pipeline():  # a pipeline in a pipeline ends with a synchronisation
            pass

    faults.reach(point, thread=attempt.thread, first=arrive)


def _cause(attempt: Attempt, call: ValidCall) -> Cause:
    return Cause(thread=attempt.thread, ai_message_id=attempt.ai_message_id, call_index=call.index, subject=attempt.subject)


def _stop_if_known(lookups: tuple[Cursor[Any], Cursor[Any]]) -> None:
    try:
        known = Known(stored=executions.read(lookups[0]), told=aborts.read(lookups[1]))
    except psycopg.Error:
        return  # the beginning itself failed (a lost lease, a timeout); the trace has kept that error
    if known.stored or known.told is not None:
        raise _AnsweredBefore(known)
