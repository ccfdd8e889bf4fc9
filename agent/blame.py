"""After a failure: which call and statement it was, what the earlier calls had changed, and who deals with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.pq import TransactionStatus

from agent.failures import Kind, Phase, classify
from agent.trace import Trace
from agent.validation import ValidCall
from ledger import changes
from ledger.attempts import Attempt, Failure

Row = dict[str, Any]


class Swallowed(Exception):
    """A tool went on after a database error: nothing of the batch was applied, and the tool is named."""


class Failed(Exception):
    """A batch was rolled back, whole. With `sentences`, each of its calls failed for itself."""

    def __init__(
        self,
        *,
        kind: Kind,
        phase: Phase,
        cause: BaseException,
        failure: Failure,
        undone: list[Row] | None,
        sentences: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__(f"{kind} in {phase}: {type(cause).__name__}")
        self.kind, self.phase, self.cause, self.failure, self.undone = kind, phase, cause, failure, undone
        self.sentences = dict(sentences or {})

    @property
    def detail(self) -> str:
        """Return what the database said in particular."""
        return (self.cause.diag.message_detail or "") if isinstance(self.cause, psycopg.Error) else ""


def savepoint(verb: str, index: int) -> sql.Composed:
    """Return a savepoint statement for the call of this index."""
    return sql.SQL(verb + " {}").format(sql.Identifier(f"call_{index}"))


def failure(conn: Connection[Any], attempt: Attempt, *, trace: Trace, calls: Sequence[ValidCall], error: Exception) -> Failed:
    """Roll the transaction back and return what happened. The connection is outside pipeline mode."""
    cause = _cause(trace, error)
    phase, call = (trace.failed.phase, trace.failed.call) if trace.failed else (trace.phase, trace.call)
    kind, undone = classify(phase=phase, error=cause), None
    try:
        call, undone = _roll_back(conn, attempt, phase=phase, trace=trace, calls=calls)
    except psycopg.Error as lost:  # the connection is gone, and the transaction with it
        if kind is Kind.MODEL:  # without the evidence of what is undone nobody is told: it fails again, and then it is read
            kind, cause, trace = classify(phase=Phase.BEGIN, error=lost), lost, Trace()
    return Failed(
        kind=kind,
        phase=phase,
        cause=cause,
        failure=_describe(trace, cause=cause, call=call, swallowed=isinstance(error, Swallowed)),
        undone=undone,
    )


def of_call(trace: Trace, *, call: ValidCall, error: Exception) -> Failed:
    """Return what happened in a call that is undone alone."""
    cause = _cause(trace, error)
    phase = trace.failed.phase if trace.failed else Phase.CALL
    failure = _describe(trace, cause=cause, call=call.index, swallowed=isinstance(error, Swallowed))
    return Failed(kind=classify(phase=phase, error=cause), phase=phase, cause=cause, failure=failure, undone=None)


def all_failed(failed: Sequence[Failed], sentences: Mapping[int, str]) -> Failed:
    """Return the failure of a batch of which no call is left: the first one's, with every call's sentence."""
    first = failed[0]
    return Failed(kind=first.kind, phase=first.phase, cause=first.cause, failure=first.failure, undone=[], sentences=sentences)


def _cause(trace: Trace, error: Exception) -> BaseException:
    """Return the database's own error when there is one; it wins over what a tool raised later."""
    for candidate in (trace.error, error):
        if isinstance(candidate, psycopg.Error) and candidate.sqlstate:
            return candidate
    return trace.error or error


def _roll_back(
    conn: Connection[Any], attempt: Attempt, *, phase: Phase, trace: Trace, calls: Sequence[ValidCall]
) -> tuple[int | None, list[Row] | None]:
    """Return the failed call and the changes of those before it, and leave the connection idle. Raises when it is lost."""
    told_by_trace = trace.failed.call if trace.failed else trace.call
    if conn.info.transaction_status is TransactionStatus.IDLE or phase is Phase.BEGIN:
        _leave(conn)
        return told_by_trace, None
    # A tool that raised by itself left the transaction usable: then its own changes can be read too.
    usable = conn.info.transaction_status is TransactionStatus.INTRANS
    undone = trace.changes or (changes.of_attempt(conn, attempt_id=attempt.id) if usable else None)
    call = _innermost(conn, calls=calls)
    if undone is None and call is not None:
        undone = changes.of_attempt(conn, attempt_id=attempt.id)
    _leave(conn)
    return (told_by_trace if call is None else call), undone


def _leave(conn: Connection[Any]) -> None:
    if conn.info.transaction_status is not TransactionStatus.IDLE:
        conn.execute("ROLLBACK")


def _innermost(conn: Connection[Any], *, calls: Sequence[ValidCall]) -> int | None:
    """Return the call whose savepoint still exists: released ones are gone, later ones were never made."""
    for call in reversed(calls):
        try:
            conn.execute(savepoint("ROLLBACK TO SAVEPOINT", call.index))
        except psycopg.errors.InvalidSavepointSpecification:
            continue
        return call.index
    return None


def _describe(trace: Trace, *, cause: BaseException, call: int | None, swallowed: bool) -> Failure:
    diag = cause.diag if isinstance(cause, psycopg.Error) else None
    detail = str(cause).split("\n")[0][:500]
    return Failure(
        call=call,
        statement=trace.failed.text[:2000] if trace.failed else None,
        statement_number=trace.failed.number if trace.failed else None,
        sqlstate=cause.sqlstate if isinstance(cause, psycopg.Error) else None,
        constraint=diag.constraint_name if diag else None,
        table=diag.table_name if diag else None,
        detail=f"{type(cause).__name__}: {detail}" + (" (the tool went on after it)" if swallowed else ""),
    )
