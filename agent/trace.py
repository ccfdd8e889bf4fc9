"""Which statement failed. In pipeline mode an error surfaces later than its statement, in another call's code."""

import contextlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import Connection, Cursor
from psycopg.abc import Query
from psycopg.sql import Composable

from agent.failures import Phase

# A tool that ended the transaction would make its effects permanent behind the batch's back.
CONTROL = frozenset(
    {"abort", "begin", "commit", "discard", "end", "prepare", "release", "reset", "rollback", "savepoint", "set", "start"}
)


class ControlsTransaction(Exception):
    """A tool tried to begin, end or nest a transaction, or to change the session."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement as it was sent: in which phase, by which call (None: by the node itself), and its number from 1."""

    phase: Phase
    call: int | None
    number: int
    text: str


@dataclass
class Trace:
    """What was sent, in order, and the first statement that the server refused."""

    phase: Phase = Phase.BEGIN
    call: int | None = None
    counted: int = 0
    guarded: bool = False  # a tool is running
    failed: Statement | None = None
    error: psycopg.Error | None = None
    changes: list[dict[str, Any]] = field(default_factory=list)  # told as they happened, if asked for

    def enter(self, phase: Phase, call: int | None = None) -> None:
        """Say whose statements follow."""
        self.phase, self.call, self.counted = phase, call, 0

    def sent(self, query: Query) -> Statement:
        """Number a statement; refuse one that a tool may not send."""
        text = _text(query)
        if self.guarded and text.partition(" ")[0].rstrip(";").lower() in CONTROL:
            raise ControlsTransaction(text[:100])
        self.counted += 1
        return Statement(phase=self.phase, call=self.call, number=self.counted, text=text)

    def heard(self, notice: psycopg.errors.Diagnostic) -> None:
        """Keep a change that a trigger told of: a notice outlives the rollback, the failing call's own rows included."""
        if notice.message_primary == "backstop.change" and notice.message_detail:
            self.changes.append(json.loads(notice.message_detail))

    def refused(self, statement: Statement, error: psycopg.Error) -> None:
        """Keep the first error: whatever follows it was aborted because of it."""
        if self.failed is None:
            self.failed, self.error = statement, error

    def forgive(self) -> None:
        """Forget the refused statement: whatever it had changed is undone, and the batch goes on."""
        self.failed, self.error = None, None


def _text(query: Query) -> str:
    if isinstance(query, bytes):
        return query.decode(errors="replace").strip()
    return (query.as_string(None) if isinstance(query, Composable) else str(query)).strip()


@dataclass(frozen=True)
class CursorFactory:
    """Makes cursors that report to a trace; put on a connection as its `cursor_factory`."""

    trace: Trace = field(default_factory=Trace)

    def __call__(self, conn: Connection[Any], **options: Any) -> "TracedCursor":
        cursor = TracedCursor(conn, **options)
        cursor.trace = self.trace
        return cursor


class TracedCursor(Cursor[Any]):
    """A cursor that knows for each answer of the server which statement it belongs to."""

    trace: Trace

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unanswered: deque[Statement] = deque()
        self._latest: Statement | None = None

    def execute(self, query: Query, *args: Any, **options: Any) -> "TracedCursor":
        """Send a statement and remember it until its answer comes."""
        self._latest = self.trace.sent(query)
        self._unanswered.append(self._latest)
        super().execute(query, *args, **options)
        return self

    def executemany(self, query: Query, *args: Any, **options: Any) -> None:
        """Send one statement for many rows; it counts once."""
        self._latest = self.trace.sent(query)
        super().executemany(query, *args, **options)

    def _check_results(self, results: list[Any]) -> None:
        # Answers come in the order of the statements. psycopg has no public place to see each of them;
        # tests/test_rollbacks.py fails if this one moves.
        statement = self._unanswered.popleft() if self._unanswered else self._latest
        assert statement is not None
        try:
            super()._check_results(results)
        except psycopg.Error as error:
            self.trace.refused(statement, error)
            raise


@contextlib.contextmanager
def of(conn: Connection[Any], trace: Trace) -> Iterator[None]:
    """Trace what this connection sends and hears meanwhile."""
    usual = conn.cursor_factory
    conn.cursor_factory = CursorFactory(trace)  # type: ignore[assignment]  # called like a class
    conn.add_notice_handler(trace.heard)
    try:
        yield
    finally:
        conn.remove_notice_handler(trace.heard)
        conn.cursor_factory = usual
