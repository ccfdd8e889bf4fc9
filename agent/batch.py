"""The tools node's work: validate → gate → execute → translate. One batch in, one answer for each call out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import psycopg
from django.utils import timezone
from psycopg import Connection

from agent import answers, execution, explanations, gate, policies, validation, windows
from agent.answers import Answer
from agent.approvals import Permission
from agent.blame import Failed
from agent.failures import BUSY, Bug, Infrastructure, Kind, Phase, classify
from agent.gate import Facts, Verdict
from agent.leases import LeaseLost
from agent.plans import Drifted, Known, Plan
from agent.recording import Pool, Record
from agent.tools import Tool, registry
from agent.validation import Problem, ProposedCall, ValidCall
from ledger import wiring
from ledger.attempts import Attempt
from ledger.executions import KeyConflict, Stored
from outbox import bell

Outcome = Literal["applied", "failed", "refused", "held", "drifted", "rejected", "asked"]


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

    @property
    def to_run(self) -> tuple[ProposedCall, ...]:
        """Return the calls that run: the model's own, or what people made of them."""
        changed = self.permission.calls if self.permission else None
        return self.calls if changed is None else changed


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """What became of a batch. One that is held, or has drifted from what was approved, has no answers yet."""

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
    record = Record(pool=pool, attempt=attempt_of(batch))
    try:
        return _Run(batch=batch, record=record, tools=tools if tools is not None else registry()).outcome()
    except psycopg.Error as error:  # outside of the calls: a read-only server says so in another family of errors
        kind = classify(phase=Phase.BEGIN, error=error)
        if kind is Kind.LOST_LEASE:
            raise LeaseLost from error
        raise (Infrastructure if kind is Kind.INFRASTRUCTURE else Bug)(type(error).__name__) from error


def attempt_of(batch: Batch) -> Attempt:
    """Return a new attempt at a batch."""
    runs = {call.index: call for call in batch.to_run}
    calls = [_row(runs.get(call.index, call), dropped=call.index not in runs) for call in batch.calls]
    return Attempt(
        thread=batch.thread,
        ai_message_id=batch.ai_message_id,
        generation=batch.generation,
        subject=batch.subject,
        on_behalf_of=batch.on_behalf_of,
        performed_by=batch.permission.performed_by if batch.permission else None,
        fence=batch.fence,
        calls=calls,
        model=batch.model,
        prompt_version=batch.prompt_version,
    )


def _row(call: ProposedCall, *, dropped: bool) -> dict[str, Any]:
    row = {"index": call.index, "id": call.id, "tool": call.tool, "arguments": call.arguments}
    return row | {"dropped": True} if dropped else row


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One attempt on its way through the phases."""

    batch: Batch
    record: Record
    tools: Mapping[str, Tool]

    def outcome(self) -> BatchResult:
        if self.batch.rejection is not None:
            return self._reject(self.batch.rejection)
        if {call.index for call in self.batch.to_run} | self._dropped() != {call.index for call in self.batch.calls}:
            raise Bug("what people made of the calls leaves one without an answer")
        if not self.batch.to_run:  # people have removed every call
            return self._answer_dropped()
        calls, problems = validation.check(self.batch.to_run, tools=self.tools, subject=self.batch.subject)
        if problems:
            return self._refuse(problems)
        facts = self._facts(calls)
        waived = self.batch.permission.waived if self.batch.permission else ()
        verdicts = gate.judge(calls, facts=facts, rules=wiring.plugged("BACKSTOP_POLICIES"), waived=waived)
        if refusals := [Problem(call_index=v.call_index, sentence=v.sentence) for v in verdicts if v.action == "refuse"]:
            return self._refuse(refusals, verdicts)
        if verdicts:
            return self._hold(verdicts)
        day, permission = timezone.localdate(), self.batch.permission
        return self._execute(Plan(calls=calls, day=day, limits=facts.windows, permission=permission))

    def _dropped(self) -> set[int]:
        return set(self.batch.permission.dropped) if self.batch.permission else set()

    # -- without effects -----------------------------------------------------------------------

    def _facts(self, calls: Sequence[ValidCall]) -> Facts:
        b = self.batch
        with self.record.pool.connection() as conn:
            return policies.facts(conn, thread=b.thread, subject=b.subject, on_behalf_of=b.on_behalf_of, calls=calls)

    def _hold(self, verdicts: list[Verdict]) -> BatchResult:
        known = self.record.hold(verdicts)
        return self._known(known) if known else self._result("held", verdicts=verdicts)

    def _answer_dropped(self) -> BatchResult:
        told = self.record.answer("rejected", lambda conn: answers.dropped(self.batch.permission))
        return self._known(told) if isinstance(told, Known) else self._result("rejected", answers=told)

    def _reject(self, reason: str) -> BatchResult:
        told = self.record.answer(
            "rejected", lambda conn: answers.rejected(self.batch.calls, reason=reason, word=self.batch.rejected_as)
        )
        return self._known(told) if isinstance(told, Known) else self._result("rejected", answers=told)

    def _refuse(self, problems: list[Problem], verdicts: Sequence[Verdict] = ()) -> BatchResult:
        rows = [verdict.row() for verdict in verdicts] or [vars(problem) for problem in problems]
        given = answers.with_dropped(answers.refused(self.batch.to_run, problems=problems), self.batch.permission)
        told = self.record.answer("refused", lambda conn: given, problems=rows)
        if isinstance(told, Known):
            return self._known(told)
        return self._result("refused", answers=told, verdicts=list(verdicts), problems=problems)

    # -- with effects --------------------------------------------------------------------------

    def _execute(self, plan: Plan) -> BatchResult:
        try:
            with self.record.pool.connection() as conn:
                done = execution.run(conn, self.record.attempt, plan=plan)
        except Drifted as drifted:
            return self._drift(drifted.effects.changes)
        except Failed as failed:
            return self._failed(failed, plan)
        if isinstance(done, Known):
            return self._known(done, plan.calls)
        if done.queued:
            bell.ring("outbox.deliver")
        self.record.log("agent.attempt.closed", outcome="committed", performed_by=self.record.attempt.performed_by)
        return self._applied(done.results, done.told, plan.calls)

    def _applied(
        self, results: Mapping[int, Mapping[str, Any]], told: Sequence[Answer], calls: Sequence[ValidCall]
    ) -> BatchResult:
        if any(call.tool.asks_person for call in calls):
            return self._result("asked", answers=answers.asked(self.batch.calls))
        return self._result("applied", answers=answers.applied(results, told=told))

    def _failed(self, failed: Failed, plan: Plan) -> BatchResult:
        if failed.kind is Kind.LIMIT:
            return self._go_over(failed, plan)
        pinned = plan.permission is not None and plan.permission.digest is not None
        kind = Kind.INFRASTRUCTURE if pinned and failed.failure.sqlstate in BUSY else failed.kind  # it is run again unchanged
        if kind is Kind.MODEL and pinned:
            return self._drift(failed.undone, failed)
        if kind is Kind.MODEL and failed.failure.call is not None:
            return self._tell(failed, next(call for call in plan.calls if call.index == failed.failure.call))
        self.record.leave_untold(failed, kind=kind)
        if kind is Kind.LOST_LEASE:
            raise LeaseLost from failed
        error = Infrastructure if kind is Kind.INFRASTRUCTURE else Bug
        raise error(failed.failure.detail or str(failed)) from failed

    def _go_over(self, failed: Failed, plan: Plan) -> BatchResult:
        """Hold a batch whose amounts went over a cumulative limit, with everything that it had done undone."""
        verdicts = windows.verdicts(failed.detail, calls=plan.calls, limits=plan.limits)
        known = self.record.hold(verdicts, failed=failed)
        return self._known(known) if known else self._result("held", verdicts=verdicts)

    def _drift(self, would: Sequence[dict[str, Any]] | None, failed: Failed | None = None) -> BatchResult:
        """Ask again: what a person approved is not what would happen now."""
        known = self.record.drift(would=would, failed=failed)
        return self._known(known) if known else self._result("drifted")

    def _tell(self, failed: Failed, call: ValidCall) -> BatchResult:
        """Answer a batch whose failing call the model can correct."""
        if failed.failure.sqlstate == "42501":
            self.record.log("agent.call.overstepped", tool=call.tool.name)

        def told(conn: Connection[Any]) -> list[Answer]:
            if failed.sentences:
                return answers.all_failed(failed.sentences)
            sentence = explanations.sentence(conn, failed, call=call)
            given = answers.failed(self.batch.to_run, failed_call=call.index, sentence=sentence)
            return answers.with_dropped(given, self.batch.permission)

        given = self.record.answer("rolled_back", told, failed=failed)
        return self._known(given) if isinstance(given, Known) else self._result("failed", answers=given)

    # -- known batches -------------------------------------------------------------------------

    def _known(self, known: Known, calls: Sequence[ValidCall] = ()) -> BatchResult:
        """Answer as the batch was answered before."""
        told = answers.restored(known.told or [])
        if not known.stored:
            rejected = any(answer.status in ("rejected", "dropped") for answer in told)
            return self._result("rejected" if rejected else "failed", answers=told)
        self._check_same(known.stored, told, calls)
        self.record.log("agent.batch.replayed")
        results = {row.call_index: row.result for row in known.stored}
        return self._applied(results, told, calls or self._restored_calls())

    def _check_same(self, stored: Sequence[Stored], told: Sequence[Answer], calls: Sequence[ValidCall]) -> None:
        """Raise Bug when a known key came with other calls."""
        keys = {row.call_index: row.fingerprint for row in stored}
        answered = keys.keys() | {answer.call_index for answer in told}
        same = all(call.fingerprint == keys.get(call.index, call.fingerprint) for call in calls)
        if answered != {call.index for call in self.batch.calls} or not same:
            raise Bug("a known batch came back with other calls") from KeyConflict()

    def _restored_calls(self) -> Sequence[ValidCall]:
        return validation.check(self.batch.to_run, tools=self.tools, subject=self.batch.subject)[0]

    def _result(self, kind: Outcome, **details: Any) -> BatchResult:
        return BatchResult(kind=kind, attempt_id=self.record.attempt.id, **details)
