"""Previews: what a batch would do, found out by doing it. Validated, judged, run by the same function, and rolled back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import psycopg
import structlog
from django.utils import timezone
from psycopg_pool import PoolTimeout

from agent import batch, execution, explanations, gate, policies, preamble, validation, windows
from agent.batch import Batch
from agent.blame import Failed
from agent.failures import BUSY, Kind, Phase, classify
from agent.gate import Facts
from agent.leases import LeaseLost
from agent.plans import Known, Plan, Rehearsed
from agent.recording import Pool
from agent.tools import Tool, registry
from agent.validation import Problem, ValidCall
from escalations.previews import Made
from ledger import wiring
from outbox import handlers

log = structlog.get_logger()

ALREADY = "This step was applied already."
UNEXPECTED = "Something unexpected failed. The step cannot be run as it is."
BUSY_NOW = "The data was busy, or the database did not answer. Nothing was changed; ask for the preview again."


def make(pool: Pool, *, batch: Batch, tools: Mapping[str, Tool] | None = None) -> Made:
    """Return what the batch would do now, every verdict included. It leaves no row, waits for no lock, and tells nobody.

    `pool` gives autocommit connections as the agent login. Raises `LeaseLost`, and `psycopg.Error` when not even the
    gate's facts could be read.
    """
    return _Preview(pool=pool, batch=batch, tools=tools if tools is not None else registry()).made()


@dataclass(kw_only=True)
class _Preview:
    """One preview on its way through the phases."""

    pool: Pool
    batch: Batch
    tools: Mapping[str, Tool]

    def made(self) -> Made:
        self.began, self.attempt = monotonic(), batch.attempt_of(self.batch)
        calls, problems = validation.check(self.batch.to_run, tools=self.tools, subject=self.batch.subject)
        facts = self._read(calls)
        self.verdicts = gate.judge(calls, facts=facts, rules=wiring.plugged("BACKSTOP_POLICIES"))
        self.needs = policies.needs(calls, facts)
        if problems:
            return self._ends("invalid", failure=_problem(problems))
        if any(verdict.action == "refuse" for verdict in self.verdicts):
            refusals = [Problem(call_index=v.call_index, sentence=v.sentence) for v in self.verdicts if v.action == "refuse"]
            return self._ends("refused", failure=_problem(refusals))
        return self._rehearse(Plan(calls=calls, day=timezone.localdate(), limits=facts.windows))

    def _read(self, calls: Sequence[ValidCall]) -> Facts:
        b = self.batch
        with self.pool.connection() as conn:
            self.version = policies.version(conn)
            return policies.facts(conn, thread=b.thread, subject=b.subject, on_behalf_of=b.on_behalf_of, calls=calls)

    def _rehearse(self, plan: Plan) -> Made:
        try:
            with self.pool.connection() as conn:
                done = execution.rehearse(conn, self.attempt, plan=plan)
        except Failed as failed:
            return self._failed(failed, plan)
        except (psycopg.Error, PoolTimeout) as error:
            return self._unavailable(error)
        return self._known() if isinstance(done, Known) else self._clean(done, plan)

    def _clean(self, done: Rehearsed, plan: Plan) -> Made:
        if done.over:
            seen = {(verdict.rule, verdict.currency) for verdict in self.verdicts}  # the gate has said so already
            over = windows.verdicts(done.over, calls=plan.calls, limits=plan.limits)
            self.verdicts += [verdict for verdict in over if (verdict.rule, verdict.currency) not in seen]
        messages = [dict(row) | {"sentence": _said(row)} for row in done.effects.messages]
        return self._ends(
            "clean",
            digest=done.effects.digest,
            changes=done.effects.changes,
            messages=messages,
            results={str(index): result for index, result in done.results.items()},
        )

    def _failed(self, failed: Failed, plan: Plan) -> Made:
        if failed.kind is Kind.LOST_LEASE:
            raise LeaseLost from failed
        if failed.kind is Kind.INFRASTRUCTURE or failed.failure.sqlstate in BUSY:
            return self._unavailable(failed)
        sentence = UNEXPECTED
        if failed.kind is Kind.MODEL:
            try:
                sentence = self._explained(failed, plan)
            except (psycopg.Error, PoolTimeout) as error:
                return self._unavailable(error)
        else:
            log.error("agent.preview.crashed", thread=str(self.batch.thread), exc_info=failed.cause)
        return self._ends("fails", failure=_failure(failed, sentence), changes=failed.undone)

    def _explained(self, failed: Failed, plan: Plan) -> str:
        call = next(call for call in plan.calls if call.index == failed.failure.call)
        with self.pool.connection() as conn, conn.transaction(force_rollback=True):
            preamble.prepare(conn, self.attempt, lock_timeout=execution.PREVIEW_LOCK_TIMEOUT)
            return explanations.sentence(conn, failed, call=call)

    def _known(self) -> Made:
        return self._ends("fails", failure={"call_index": None, "sentence": ALREADY})

    def _unavailable(self, error: Exception) -> Made:
        cause = error.cause if isinstance(error, Failed) else error
        if isinstance(cause, psycopg.Error) and classify(phase=Phase.BEGIN, error=cause) is Kind.LOST_LEASE:
            raise LeaseLost from error
        log.warning("agent.preview.blocked", thread=str(self.batch.thread), error=type(cause).__name__)
        return self._ends("unavailable", failure={"call_index": None, "sentence": BUSY_NOW, "detail": type(cause).__name__})

    def _ends(self, outcome: Any, **details: Any) -> Made:
        return Made(
            outcome=outcome,
            policy_version=self.version,
            verdicts=[verdict.row() for verdict in self.verdicts],
            allowed=outcome == "clean" and not self.verdicts,
            needs=self.needs,
            duration_ms=int((monotonic() - self.began) * 1000),
            **details,
        )


def _said(message: Mapping[str, Any]) -> str:
    return handlers.sentence(topic=message["topic"], payload=message["payload"])


def _problem(problems: Sequence[Problem]) -> dict[str, Any]:
    every = [vars(problem) for problem in problems]
    return {**every[0], "problems": every}


def _failure(failed: Failed, sentence: str) -> dict[str, Any]:
    f = failed.failure
    return {
        "call_index": f.call,
        "sentence": sentence,
        "sqlstate": f.sqlstate,
        "constraint": f.constraint,
        "table": f.table,
        "statement": f.statement,
        "statement_number": f.statement_number,
        "detail": f.detail,
    }
