"""The tools node's work: validate → gate → execute → translate. One batch in, one answer for each call out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import psycopg
from django.utils import timezone
from psycopg import Connection

from agent import answers, execution, explanations, gate, policies, validation
from agent.answers import Answer
from agent.approvals import Permission
from agent.blame import Failed
from agent.execution import Known
from agent.failures import Bug, Infrastructure, Kind, Phase, classify
from agent.gate import Verdict
from agent.leases import LeaseLost
from agent.recording import Pool, Record
from agent.tools import Tool, registry
from agent.validation import Problem, ProposedCall, ValidCall
from ledger import wiring
from ledger.attempts import Attempt
from ledger.executions import KeyConflict, Stored
from outbox import bell

Outcome = Literal["applied", "failed", "refused", "held", "rejected", "asked"]


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
    permission: Permission | None = None  # what people decided about this generation
    rejection: str | None = None  # why it must not run
    rejected_as: answers.No = "REJECTED"


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
    record = Record(pool=pool, attempt=_attempt(batch))
    try:
        return _Run(batch=batch, record=record, tools=tools if tools is not None else registry()).outcome()
    except psycopg.Error as error:  # outside of the calls: a read-only server says so in another family of errors
        kind = classify(phase=Phase.BEGIN, error=error)
        if kind is Kind.LOST_LEASE:
            raise LeaseLost from error
        raise (Infrastructure if kind is Kind.INFRASTRUCTURE else Bug)(type(error).__name__) from error


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


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One attempt on its way through the phases."""

    batch: Batch
    record: Record
    tools: Mapping[str, Tool]

    def outcome(self) -> BatchResult:
        if self.batch.rejection is not None:
            return self._reject(self.batch.rejection)
        calls, problems = validation.check(self.batch.calls, tools=self.tools, subject=self.batch.subject)
        if problems:
            return self._refuse(problems)
        verdicts = self._verdicts(calls)
        if refusals := [Problem(call_index=v.call_index, sentence=v.sentence) for v in verdicts if v.action == "refuse"]:
            return self._refuse(refusals, verdicts)
        if verdicts:
            return self._hold(verdicts)
        return self._execute(calls)

    # -- without effects -----------------------------------------------------------------------

    def _verdicts(self, calls: Sequence[ValidCall]) -> list[Verdict]:
        with self.record.pool.connection() as conn:
            to = self.batch
            facts = policies.facts(conn, thread=to.thread, subject=to.subject, on_behalf_of=to.on_behalf_of, calls=calls)
        waived = self.batch.permission.waived if self.batch.permission else ()
        return gate.judge(calls, facts=facts, rules=wiring.plugged("BACKSTOP_POLICIES"), waived=waived)

    def _hold(self, verdicts: list[Verdict]) -> BatchResult:
        known = self.record.hold(verdicts)
        return self._known(known) if known else self._result("held", verdicts=verdicts)

    def _reject(self, reason: str) -> BatchResult:
        told = self.record.answer(
            "rejected", lambda conn: answers.rejected(self.batch.calls, reason=reason, word=self.batch.rejected_as)
        )
        return self._known(told) if isinstance(told, Known) else self._result("rejected", answers=told)

    def _refuse(self, problems: list[Problem], verdicts: Sequence[Verdict] = ()) -> BatchResult:
        rows = [verdict.row() for verdict in verdicts] or [vars(problem) for problem in problems]
        given = answers.refused(self.batch.calls, problems=problems)
        told = self.record.answer("refused", lambda conn: given, problems=rows)
        if isinstance(told, Known):
            return self._known(told)
        return self._result("refused", answers=told, verdicts=list(verdicts), problems=problems)

    # -- with effects --------------------------------------------------------------------------

    def _execute(self, calls: Sequence[ValidCall]) -> BatchResult:
        try:
            with self.record.pool.connection() as conn:
                done = execution.run(conn, self.record.attempt, calls=calls, day=timezone.localdate())
        except Failed as failed:
            return self._failed(failed, calls)
        if isinstance(done, Known):
            return self._known(done, calls)
        if done.queued:
            bell.ring("outbox.deliver")
        self.record.log("agent.attempt.closed", outcome="committed")
        return self._applied(done.results, calls)

    def _applied(self, results: Mapping[int, Mapping[str, Any]], calls: Sequence[ValidCall]) -> BatchResult:
        if any(call.tool.asks_person for call in calls):
            return self._result("asked", answers=answers.asked(self.batch.calls))
        return self._result("applied", answers=answers.applied(results))

    def _failed(self, failed: Failed, calls: Sequence[ValidCall]) -> BatchResult:
        if failed.kind is Kind.MODEL and failed.failure.call is not None:
            return self._tell(failed, next(call for call in calls if call.index == failed.failure.call))
        self.record.leave_untold(failed)
        if failed.kind is Kind.LOST_LEASE:
            raise LeaseLost from failed
        error = Infrastructure if failed.kind is Kind.INFRASTRUCTURE else Bug
        raise error(failed.failure.detail or str(failed)) from failed

    def _tell(self, failed: Failed, call: ValidCall) -> BatchResult:
        """Answer a batch whose failing call the model can correct."""
        if failed.failure.sqlstate == "42501":
            self.record.log("agent.call.overstepped", tool=call.tool.name)

        def told(conn: Connection[Any]) -> list[Answer]:
            sentence = explanations.sentence(conn, failed, call=call)
            return answers.failed(self.batch.calls, failed_call=call.index, sentence=sentence)

        given = self.record.answer("rolled_back", told, failed=failed)
        return self._known(given) if isinstance(given, Known) else self._result("failed", answers=given)

    # -- known batches -------------------------------------------------------------------------

    def _known(self, known: Known, calls: Sequence[ValidCall] = ()) -> BatchResult:
        """Answer as the batch was answered before."""
        if not known.stored:
            given = answers.restored(known.told or [])
            rejected = any(answer.status == "rejected" for answer in given)
            return self._result("rejected" if rejected else "failed", answers=given)
        self._check_same(known.stored, calls)
        self.record.log("agent.batch.replayed")
        return self._applied({row.call_index: row.result for row in known.stored}, calls or self._restored_calls())

    def _check_same(self, stored: Sequence[Stored], calls: Sequence[ValidCall]) -> None:
        """Raise Bug when a known key came with other calls."""
        keys = {row.call_index: row.fingerprint for row in stored}
        if set(keys) != {call.index for call in self.batch.calls} or any(keys[c.index] != c.fingerprint for c in calls):
            raise Bug("a known batch came back with other calls") from KeyConflict()

    def _restored_calls(self) -> Sequence[ValidCall]:
        return validation.check(self.batch.calls, tools=self.tools, subject=self.batch.subject)[0]

    def _result(self, kind: Outcome, **details: Any) -> BatchResult:
        return BatchResult(kind=kind, attempt_id=self.record.attempt.id, **details)
