"""What is kept of a batch besides its effects: its outcome and the answers that the model got. Fenced, and once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

import psycopg
import structlog
from psycopg import Connection
from psycopg_pool import ConnectionPool

from agent import earlier, preamble
from agent.answers import Answer
from agent.blame import Failed
from agent.failures import Kind
from agent.gate import Verdict
from agent.plans import Known
from ledger import aborts, attempts
from ledger.attempts import Attempt, Failure

log = structlog.get_logger()

Pool = ConnectionPool[Connection[Any]]
Told = Callable[[Connection[Any]], list[Answer]]
Row = dict[str, Any]

UNTOLD = {Kind.LOST_LEASE: "lost_lease", Kind.INFRASTRUCTURE: "infrastructure"}  # everything else is a bug


@dataclass(frozen=True, kw_only=True)
class Record:
    """One attempt and what becomes of it."""

    pool: Pool
    attempt: Attempt
    began: float = field(default_factory=monotonic)

    def hold(self, verdicts: Sequence[Verdict], *, failed: Failed | None = None) -> Known | None:
        """Record that a person has to be asked first, unless the batch has an answer already: then return that.

        One that `failed` because of a cumulative limit has begun, and so its attempt is there already.
        """
        with self.pool.connection() as conn, conn.transaction():
            if known := self._begin(conn):
                return known
            if failed is None:
                attempts.insert(conn, self.attempt)
            self._close(conn, outcome="held", failed=failed, problems=[v.row() for v in verdicts])
        self.log("agent.attempt.closed", outcome="held", rule=verdicts[0].rule)
        return None

    def drift(self, *, would: Sequence[Row] | None, failed: Failed | None = None) -> Known | None:
        """Record that what would happen now is not what a person approved, unless the batch has an answer already.

        `would` are the changes that it would make; one that would not come to its end `failed`.
        """
        with self.pool.connection() as conn, conn.transaction():
            if known := self._begin(conn):
                return known
            undone = None if would is None else list(would)
            failure = failed.failure if failed else None
            attempts.close(conn, self.attempt, outcome="drifted", failure=failure, undone=undone, duration_ms=self.ms)
        self.log("agent.attempt.closed", outcome="drifted", sqlstate=failure.sqlstate if failure else None)
        return None

    def answer(
        self,
        outcome: Literal["refused", "rejected", "rolled_back"],
        told: Told,
        *,
        problems: list[Row] | None = None,
        failed: Failed | None = None,
    ) -> list[Answer] | Known:
        """Record outcome and answers, unless the batch has an answer already: then return that.

        `told` makes the answers inside the transaction, where facts are current. A batch that `failed` has begun, and so
        its attempt is there already.
        """
        failure = failed.failure if failed else Failure()
        with self.pool.connection() as conn, conn.transaction():
            if known := self._begin(conn):
                return known
            given = told(conn)
            rows = [answer.row() for answer in given]
            if failed is None:
                attempts.insert(conn, self.attempt)
            self._close(conn, outcome=outcome, failed=failed, problems=problems, told=rows)
            aborts.record(conn, self.attempt, told=rows)
        self.log("agent.attempt.closed", outcome=outcome, sqlstate=failure.sqlstate, failed_call=failure.call)
        return given

    def leave_untold(self, failed: Failed, *, kind: Kind) -> None:
        """Record an outcome that nobody is told of; when even that fails the attempt stays open and is found as such."""
        outcome = UNTOLD.get(kind, "bug")
        self.log("agent.attempt.closed", outcome=outcome, sqlstate=failed.failure.sqlstate, detail=failed.failure.detail)
        try:
            with self.pool.connection(timeout=2) as conn, conn.transaction():
                conn.execute("SELECT set_config('lock_timeout', '2s', true)")
                self._close(conn, outcome=outcome, failed=failed)
        except psycopg.Error as error:
            log.warning("agent.attempt.left_open", attempt=str(self.attempt.id), error=type(error).__name__)

    def log(self, event: str, **details: Any) -> None:
        """Log an event of this attempt."""
        log.info(
            event,
            thread=str(self.attempt.thread),
            attempt=str(self.attempt.id),
            tools=[call["tool"] for call in self.attempt.calls],
            ms=self.ms,
            **{key: value for key, value in details.items() if value is not None},
        )

    @property
    def ms(self) -> int:
        """Return the milliseconds since the attempt began."""
        return int((monotonic() - self.began) * 1000)

    def _begin(self, conn: Connection[Any]) -> Known | None:
        """Begin fenced and under the thread's lock, and return what the batch was answered before, if it was."""
        preamble.prepare(conn, self.attempt)
        return earlier.read(earlier.ask(conn, self.attempt))

    def _close(self, conn: Connection[Any], *, outcome: str, failed: Failed | None, **details: Any) -> None:
        attempts.close(
            conn,
            self.attempt,
            outcome=outcome,
            failure=failed.failure if failed else None,
            undone=failed.undone if failed else None,
            duration_ms=self.ms,
            **details,
        )
