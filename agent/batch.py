"""The tools node's work: validate → gate → execute → translate. One batch in, one answer for each call out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal
from uuid import UUID

import psycopg
import structlog
from django.utils import timezone
from psycopg import Connection
from psycopg_pool import ConnectionPool

from agent import answers, execution, explanations, gate, policies, preamble, validation
from agent.answers import Answer
from agent.blame import Failed
from agent.failures import Bug, Infrastructure, Kind
from agent.gate import Verdict
from agent.leases import LeaseLost
from agent.tools import Tool, registry
from agent.validation import Problem, ProposedCall, ValidCall
from ledger import aborts, attempts, executions, wiring
from ledger.attempts import Attempt, Failure
from ledger.executions import KeyConflict, Stored
from outbox import bell

log = structlog.get_logger()

Outcome = Literal["applied", "failed", "refused", "held", "rejected", "asked"]
Pool = ConnectionPool[Connection[Any]]
Told = Callable[[Connection[Any]], list[Answer]]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The tool calls of one step, and for whom they run."""

    thread: UUID
    ai_message_id: str
    subject: int
    on_behalf_of: int
    fence: int
    model: str
    prompt_version: str
    calls: tuple[ProposedCall, ...]
    generation: int = 0  # raised by a person's decision only
    waived: tuple[Mapping[str, Any], ...] = ()  # verdicts that a person approved, for this generation
    rejection: str | None = None  # a person's reason to say no


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """What became of a batch. Held batches have no answers yet."""

    kind: Outcome
    attempt_id: UUID
    answers: list[Answer] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def run_batch(pool: Pool, *, batch: Batch, tools: Mapping[str, Tool] | None = None) -> BatchResult:
    """Bring a batch to its one outcome, whatever was tried of it before.

    `pool` gives autocommit connections as the agent login. Raises `LeaseLost`, `Infrastructure` (may be run again)
    or `Bug` (must not); none of them leaves an effect behind.
    """
    run = _Run(pool=pool, batch=batch, attempt=_attempt(batch), tools=tools if tools is not None else registry())
    try:
        return run.outcome()
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise Infrastructure(type(error).__name__) from error
    except psycopg.Error as error:
        if error.sqlstate == "BS001":
            raise LeaseLost from error
        raise Bug(type(error).__name__) from error


def _attempt(batch: Batch) -> Attempt:
    calls = [{"index": c.index, "id": c.id, "tool": c.tool, "arguments": c.arguments} for c in batch.calls]
    return Attempt(
        thread=batch.thread,
        ai_message_id=batch.ai_message_id,
        generation=batch.generation,
        subject=batch.subject,
        on_behalf_of=batch.on_behalf_of,
        fence=batch.fence,
        calls=calls,
        model=batch.model,
        prompt_version=batch.prompt_version,
    )


@dataclass(kw_only=True)
class _Run:
    """One attempt on its way through the phases."""

    pool: Pool
    batch: Batch
    attempt: Attempt
    tools: Mapping[str, Tool]
    began: float = field(default_factory=monotonic)

    def outcome(self) -> BatchResult:
        if self.batch.rejection is not None:
            reason = self.batch.rejection
            return self._answer("rejected", lambda conn: answers.rejected(self.batch.calls, reason=reason))
        calls, problems = validation.check(self.batch.calls, tools=self.tools, subject=self.batch.subject)
        if problems:
            return self._refuse(problems)
        verdicts = self._verdicts(calls)
        if refusals := [Problem(call_index=v.call_index, sentence=v.sentence) for v in verdicts if v.action == "refuse"]:
            return self._refuse(refusals, verdicts)
        if verdicts:
            return self._hold(verdicts)
        return self._execute(calls)

    # -- gate ----------------------------------------------------------------------------------

    def _verdicts(self, calls: Sequence[ValidCall]) -> list[Verdict]:
        with self.pool.connection() as conn:
            facts = policies.facts(conn)
        return gate.judge(calls, facts=facts, rules=wiring.plugged("BACKSTOP_POLICIES"), waived=self.batch.waived)

    def _hold(self, verdicts: list[Verdict]) -> BatchResult:
        with self.pool.connection() as conn, conn.transaction():
            if known := self._begin(conn):
                return known
            attempts.insert(conn, self.attempt)
            attempts.close(conn, self.attempt, outcome="held", problems=[v.row() for v in verdicts], duration_ms=self._ms())
        self._log("held", rule=verdicts[0].rule)
        return BatchResult(kind="held", attempt_id=self.attempt.id, verdicts=verdicts)

    # -- answers without effects ---------------------------------------------------------------

    def _refuse(self, problems: list[Problem], verdicts: list[Verdict] | None = None) -> BatchResult:
        told = answers.refused(self.batch.calls, problems=problems)
        rows = [v.row() for v in verdicts] if verdicts else [vars(problem) for problem in problems]
        result = self._answer("refused", lambda conn: told, problems=rows)
        return BatchResult(
            kind=result.kind, attempt_id=result.attempt_id, answers=result.answers, verdicts=verdicts or [], problems=problems
        )

    def _answer(
        self,
        outcome: Literal["refused", "rejected", "rolled_back"],
        told: Told,
        *,
        opened: bool = False,
        failure: Failure | None = None,
        problems: list[dict[str, Any]] | None = None,
        undone: list[dict[str, Any]] | None = None,
    ) -> BatchResult:
        """Record outcome and answers, fenced and under the thread's lock, unless the batch has an answer already."""
        with self.pool.connection() as conn, conn.transaction():
            if known := self._begin(conn):
                return known
            given = told(conn)
            rows = [answer.row() for answer in given]
            if not opened:
                attempts.insert(conn, self.attempt)
            attempts.close(
                conn,
                self.attempt,
                outcome=outcome,
                failure=failure,
                problems=problems,
                undone=undone,
                told=rows,
                duration_ms=self._ms(),
            )
            aborts.record(conn, self.attempt, told=rows)
        self._log(outcome, sqlstate=failure.sqlstate if failure else None, failed_call=failure.call if failure else None)
        kinds: dict[str, Outcome] = {"refused": "refused", "rejected": "rejected", "rolled_back": "failed"}
        return BatchResult(kind=kinds[outcome], attempt_id=self.attempt.id, answers=given)

    def _begin(self, conn: Connection[Any]) -> BatchResult | None:
        """Begin fenced, and return what the batch was answered before, if it was."""
        preamble.prepare(conn, self.attempt)
        stored = executions.read(executions.look_up(conn, self.attempt))
        told = aborts.read(aborts.look_up(conn, self.attempt))
        return self._known(stored, told) if stored or told is not None else None

    # -- effects -------------------------------------------------------------------------------

    def _execute(self, calls: Sequence[ValidCall]) -> BatchResult:
        try:
            with self.pool.connection() as conn:
                done = execution.run(conn, self.attempt, calls=calls, day=timezone.localdate())
        except Failed as failed:
            return self._failed(failed, calls)
        if isinstance(done, execution.Known):
            return self._known(done.stored, done.told, calls)
        if done.queued:
            bell.ring("outbox.deliver")
        self._log("committed")
        return self._applied(done.results, calls)

    def _applied(self, results: Mapping[int, Mapping[str, Any]], calls: Sequence[ValidCall]) -> BatchResult:
        if any(call.tool.asks_person for call in calls):
            return BatchResult(kind="asked", attempt_id=self.attempt.id, answers=answers.asked(self.batch.calls))
        return BatchResult(kind="applied", attempt_id=self.attempt.id, answers=answers.applied(results))

    def _known(self, stored: list[Stored], told: list[dict[str, Any]] | None, calls: Sequence[ValidCall] = ()) -> BatchResult:
        """Answer as the batch was answered before."""
        if not stored:
            given = answers.restored(told or [])
            kind: Outcome = "rejected" if any(answer.status == "rejected" for answer in given) else "failed"
            return BatchResult(kind=kind, attempt_id=self.attempt.id, answers=given)
        known = {row.call_index: row for row in stored}
        if set(known) != {call.index for call in self.batch.calls} or any(
            known[call.index].fingerprint != call.fingerprint for call in calls
        ):
            raise Bug("a known batch came back with other calls") from KeyConflict()
        self._log("replayed")
        return self._applied({row.call_index: row.result for row in stored}, calls or self._restored_calls())

    def _restored_calls(self) -> Sequence[ValidCall]:
        return validation.check(self.batch.calls, tools=self.tools, subject=self.batch.subject)[0]

    # -- failures ------------------------------------------------------------------------------

    def _failed(self, failed: Failed, calls: Sequence[ValidCall]) -> BatchResult:
        if failed.kind is Kind.MODEL and failed.failure.call is not None:
            call = next(call for call in calls if call.index == failed.failure.call)
            if failed.failure.sqlstate == "42501":
                self._log("out_of_scope", tool=call.tool.name)

            def told(conn: Connection[Any]) -> list[Answer]:
                sentence = explanations.sentence(conn, failed, call=call)
                return answers.failed(self.batch.calls, failed_call=call.index, sentence=sentence)

            return self._answer("rolled_back", told, opened=True, failure=failed.failure, undone=failed.undone)
        self._record_untold(failed)
        if failed.kind is Kind.LOST_LEASE:
            raise LeaseLost from failed
        error = Infrastructure if failed.kind is Kind.INFRASTRUCTURE else Bug
        raise error(failed.failure.detail or str(failed)) from failed

    def _record_untold(self, failed: Failed) -> None:
        """Leave the outcome that nobody was told of; when even that fails the attempt stays open and is found as such."""
        outcome = {Kind.LOST_LEASE: "lost_lease", Kind.INFRASTRUCTURE: "infrastructure"}.get(failed.kind, "bug")
        self._log(outcome, sqlstate=failed.failure.sqlstate, detail=failed.failure.detail)
        try:
            with self.pool.connection(timeout=2) as conn, conn.transaction():
                conn.execute("SELECT set_config('lock_timeout', '2s', true)")
                attempts.close(
                    conn, self.attempt, outcome=outcome, failure=failed.failure, undone=failed.undone, duration_ms=self._ms()
                )
        except psycopg.Error as error:
            log.warning("agent.attempt.left_open", attempt=str(self.attempt.id), error=type(error).__name__)

    def _ms(self) -> int:
        return int((monotonic() - self.began) * 1000)

    def _log(self, event: str, **details: Any) -> None:
        log.info(
            f"agent.batch.{event}",
            thread=str(self.batch.thread),
            attempt=str(self.attempt.id),
            tools=[call.tool for call in self.batch.calls],
            ms=self._ms(),
            **{key: value for key, value in details.items() if value is not None},
        )
