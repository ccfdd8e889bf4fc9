"""Attempts as pages show them: each call with what it asked, what the model was told, and what really happened."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from ledger import diffs, links, marks, sentences
from ledger.calls import Call, counted, fault_of
from ledger.models import Attempt, AttemptOutcome, Execution, RowChange

MOST = 30  # attempts on one page
HEADLINES = {
    "": "It runs now, or its worker ended. Nothing of it is committed.",
    "refused": "Refused before running. Nothing was changed.",
    "held": "Held for a person. Nothing ran.",
    "rejected": "A reviewer said no. Nothing ran.",
    "drifted": "It would no longer do what was approved. Nothing was changed.",
    "infrastructure": "The database or the network failed. Nothing was changed.",
    "lost_lease": "Another worker had taken over. Nothing was changed.",
    "bug": "Something unexpected happened. Nothing was changed.",
}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One attempt with its outcome, if it has one. A crash may have lost the attempt's own row, never its outcome."""

    attempt: Attempt | None
    outcome: AttemptOutcome | None
    calls: list[Call]
    number: int = 0  # among the attempts that count at a request; 0: it does not

    @property
    def row(self) -> Any:
        """Return the row that says which batch this is: the attempt's, else the outcome's."""
        return self.attempt or self.outcome

    @property
    def id(self) -> UUID:
        """Return the attempt's id."""
        found: UUID = self.attempt.id if self.attempt else self.row.attempt_id
        return found

    @property
    def at(self) -> datetime:
        """Return when it began, or ended if that is all that is known."""
        found: datetime = self.attempt.opened_at if self.attempt else self.row.closed_at
        return found

    @property
    def result(self) -> str:
        """Return the outcome's name, empty while there is none."""
        return self.outcome.outcome if self.outcome else ""

    @property
    def mark(self) -> marks.Mark:
        """Return its state, icon and word."""
        does = {sentences.does(call.tool) for call in self.calls}
        return marks.of_attempt(self.result or None, does=does.pop() if len(does) == 1 else "write")

    @property
    def failing(self) -> Call | None:
        """Return the one call that caused the rollback."""
        return next((call for call in self.calls if call.fate in ("failed", "invalid")), None)

    @property
    def was_undone(self) -> bool:
        """Return whether its changes no longer exist."""
        return self.result != "committed"

    @property
    def rows(self) -> int:
        """Return how many rows it changed, kept or undone."""
        return sum(len(call.changes) for call in self.calls)

    @property
    def headline(self) -> str:
        """Return what became of it in one sentence."""
        if self.result == "committed":
            ran = [call for call in self.calls if call.fate == "applied"]
            return ran[0].sentence if len(ran) == 1 else f"{len(ran)} calls were applied together"
        if self.result == "rolled_back":
            return f"“{self.failing.sentence}” failed" if self.failing else "A call failed"
        return HEADLINES[self.result]

    @property
    def consequence(self) -> str:
        """Return what that means for the data."""
        if self.result == "committed":
            return f"{counted(self.rows)} changed in one transaction." if self.rows else "Nothing was changed."
        if self.result != "rolled_back" or not self.failing:
            return ""
        undone = f"{counted(self.rows)} undone with it" if self.rows else "no other call had changed anything"
        return f"Call {self.failing.number} of {len(self.calls)} failed; {undone.lower()}. Nothing was changed, nothing left."

    @property
    def tools(self) -> str:
        """Return the tools of the calls that were to run, in order."""
        return ", ".join(call.tool for call in self.calls if call.fate != "dropped")

    @cached_property
    def amount(self) -> str:
        """Return the largest amount among its calls."""
        found = [amount for call in self.calls if (amount := sentences.amount(tool=call.tool, arguments=call.arguments))]
        return sentences.money(*max(found)) if found else ""


def of_thread(thread: UUID, *, since: datetime | None = None, until: datetime | None = None) -> list[Evidence]:
    """Return the newest attempts of a thread in that time, newest first."""
    started = Attempt.objects.filter(thread=thread)
    ended = AttemptOutcome.objects.filter(thread=thread)
    if since:
        started, ended = started.filter(opened_at__gte=since), ended.filter(closed_at__gte=since)
    if until:
        started, ended = started.filter(opened_at__lt=until), ended.filter(closed_at__lt=until)
    found = assemble(started.order_by("-opened_at")[:MOST], ended.order_by("-closed_at")[:MOST])
    return sorted(found, key=lambda item: item.at, reverse=True)


def one(attempt_id: UUID) -> Evidence | None:
    """Return one attempt, or None."""
    found = assemble(Attempt.objects.filter(id=attempt_id), AttemptOutcome.objects.filter(attempt_id=attempt_id))
    return found[0] if found else None


def assemble(attempts: Iterable[Attempt], outcomes: Iterable[AttemptOutcome], *, changes: bool = True) -> list[Evidence]:
    """Return attempts and outcomes joined by id, in the order given; their committed changes with one more query."""
    started = {attempt.id: attempt for attempt in attempts}
    ended = {outcome.attempt_id: outcome for outcome in outcomes}
    committed = [key for key, outcome in ended.items() if outcome.outcome == "committed"]
    changed = _committed_changes(committed) if changes and committed else {}
    told = _told([ended[key] for key in committed]) if changes and committed else {}
    return [
        _evidence(started.get(key), ended.get(key), committed=changed.get(key), told=told.get(key))
        for key in [*started, *(key for key in ended if key not in started)]
    ]


def _committed_changes(ids: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = {}
    rows = RowChange.objects.filter(attempt_id__in=ids).order_by("id")
    for row in rows.values("attempt_id", "call_index", "table_name", "operation", "before", "after"):
        found.setdefault(row["attempt_id"], []).append(row)
    return found


def _told(outcomes: Sequence[AttemptOutcome]) -> dict[UUID, list[dict[str, Any]]]:
    """Return what the model was told of committed attempts: the thread's own words, else each call's result."""
    rows = Execution.objects.filter(attempt_id__in=[outcome.attempt_id for outcome in outcomes])
    said = links.answers((outcome.thread, outcome.ai_message_id) for outcome in outcomes)
    found: dict[UUID, list[dict[str, Any]]] = {}
    for row in rows:
        text = said.get((row.thread, row.ai_message_id, row.call_index)) or json.dumps(row.result, ensure_ascii=False)
        found.setdefault(row.attempt_id, []).append({"call_index": row.call_index, "text": text})
    return found


def _evidence(
    attempt: Attempt | None, outcome: AttemptOutcome | None, *, committed: list[Any] | None, told: list[Any] | None
) -> Evidence:
    asked = (attempt.calls if attempt else None) or (outcome.calls if outcome else None) or []
    changed = (committed if committed is not None else outcome.undone if outcome else None) or []
    return Evidence(
        attempt=attempt,
        outcome=outcome,
        calls=[
            _call(call, outcome=outcome, changed=changed, told=[*(told or ()), *((outcome.told if outcome else None) or ())])
            for call in asked
        ],
    )


def _call(call: Mapping[str, Any], *, outcome: AttemptOutcome | None, changed: list[Any], told: list[Any] | None) -> Call:
    index = call["index"]
    answer = _first(told, index)
    problem = _first(outcome.problems if outcome else None, index)
    failing = outcome is not None and outcome.failed_call == index
    return Call(
        index=index,
        id=call.get("id") or "",
        tool=call.get("tool") or "",
        arguments=call.get("arguments"),
        fate="dropped" if call.get("dropped") else _fate(index, outcome=outcome, told=answer, problem=problem),
        told=answer.get("text", ""),
        reason=problem.get("sentence", ""),
        fault=fault_of(outcome) if outcome and failing else None,
        changes=diffs.records((row for row in changed if row["call_index"] == index), money=sentences.money),
    )


def _first(rows: Sequence[Mapping[str, Any]] | None, index: int) -> Mapping[str, Any]:
    return next((row for row in rows or () if row.get("call_index") == index), {})


def _fate(index: int, *, outcome: AttemptOutcome | None, told: Mapping[str, Any], problem: Mapping[str, Any]) -> str:
    """Return what became of a call: as the model was told, else as the outcome says."""
    if outcome is None:
        return "left_open"
    if outcome.outcome == "refused" and problem:
        return "invalid"
    if told.get("status") in marks.CALLS:
        return str(told["status"])
    if outcome.outcome == "committed":
        return "applied"
    if outcome.outcome == "held":
        return "held" if problem else "waits"
    if outcome.failed_call is None:
        return "stopped"
    if index > outcome.failed_call:
        return "never_ran"
    return "failed" if index == outcome.failed_call else "undone"


def differing(attempts: Sequence[Evidence]) -> list[tuple[str, list[tuple[int, str, bool]]]]:
    """Return the arguments that differ: a label, and for each attempt its number, the value and whether that is new."""
    if len(attempts) < 2:
        return []
    tables = [{f"{call.tool} · {name}": value for call in item.calls for name, value in call.lines} for item in attempts]
    labels = dict.fromkeys(label for table in tables for label in table)
    lines = []
    for label in labels:
        values = [table.get(label, "—") for table in tables]
        if len(set(values)) > 1:
            new = [at > 0 and value != values[at - 1] for at, value in enumerate(values)]
            lines.append((label, list(zip((item.number for item in attempts), values, new, strict=True))))
    return lines
