"""Batch cards: what became of the tool calls of one step, in words. Pure functions over rows; a new tool needs nothing here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agent import histories
from escalations.models import Escalation
from ledger import diffs, sentences
from ledger.evidence import Evidence
from ledger.marks import CALLS, Mark
from ledger.models import Execution
from outbox.fates import Fate, fate
from outbox.models import Message

RUNNING = Mark(state="queued", icon="circle-dashed", word="Running")
NEXT = Mark(state="queued", icon="circle-dashed", word="Next")
READ = Mark(state="queued", icon="eye", word="Read")
GONE = frozenset({"undone", "never_ran", "rejected"})  # struck through: not what the database says
PREFIXES = ("FAILED: ", "REJECTED: ", "ASKED: ", "NOT APPLIED: ")
SUPERSEDED = frozenset({"", "infrastructure", "lost_lease"})  # outcomes that nobody was told of
NOTHING = "Nothing was changed."


@dataclass(frozen=True, kw_only=True)
class Line:
    """One call of a card."""

    number: int
    sentence: str
    mark: Mark
    gone: bool = False
    why: str = ""  # the reason of a failure, as the model read it
    note: str = ""  # what to know otherwise
    limit: str = ""  # what a rule measured and allows
    next_check_at: datetime | None = None
    fates: tuple[Fate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Card:
    """One attempt at a batch, or the batch itself while there is none."""

    mark: Mark
    says: str
    lines: tuple[Line, ...]
    at: datetime | None
    number: int = 0
    history: tuple[str, ...] = ()  # who held and approved it
    changes: tuple[diffs.Record, ...] = ()
    undone: bool = False
    arguments: str = ""
    attempt_id: UUID | None = None
    escalation_id: int | None = None  # while it waits for a person

    @property
    def calls(self) -> int:
        """Return how many calls it has."""
        return len(self.lines)

    def numbered(self, number: int) -> "Card":
        """Return the card with its place among the attempts at a request."""
        return replace(self, number=number)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The rows of one AI message with tool calls."""

    ai_message_id: str
    calls: Sequence[Mapping[str, Any]]  # [{"index", "id", "tool", "arguments"}]
    attempts: Sequence[Evidence] = ()
    executions: Mapping[int, Execution] = field(default_factory=dict)
    effects: Mapping[int, Sequence[Message]] = field(default_factory=dict)
    escalations: Sequence[Escalation] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    live: bool = False  # a worker runs the thread right now


def cards(step: Step) -> list[Card]:
    """Return the cards of a step: what was superseded is left to the audit pages."""
    shown = _shown(step)
    if not shown:
        return [_before_the_first(step)]
    return [_card(step, attempt) for attempt in shown]


def _shown(step: Step) -> list[Evidence]:
    """Return the attempts worth a card: the last one, and those before it that the model was told of."""
    found = []
    for place, attempt in enumerate(step.attempts):
        last = place == len(step.attempts) - 1
        held_and_gone_on = attempt.result == "held" and not last
        if last or not (attempt.result in SUPERSEDED or held_and_gone_on):
            found.append(attempt)
    return found


def _before_the_first(step: Step) -> Card:
    mark = RUNNING if step.live else NEXT
    lines = tuple(Line(number=call["index"] + 1, sentence=_proposed(call), mark=mark) for call in step.calls)
    says = "Nothing is certain before it is committed." if step.live else "Not run yet. " + NOTHING
    return Card(mark=replace(mark, word="Working") if step.live else mark, says=says, lines=lines, at=None)


def _card(step: Step, attempt: Evidence) -> Card:
    make = {
        "committed": _applied,
        "rolled_back": _undone,
        "refused": _refused,
        "held": _held,
        "rejected": _rejected,
        "": _open,
    }.get(attempt.result, _broken)
    card: Card = make(step, attempt)
    calls = [{"tool": call.get("tool"), "arguments": call.get("arguments")} for call in step.calls]
    return replace(card, at=_at(attempt), attempt_id=attempt.id, arguments=_arguments(calls))


def _at(attempt: Evidence) -> datetime:
    return attempt.outcome.closed_at if attempt.outcome else attempt.at


# -- one function for each outcome -------------------------------------------------------------------


def _applied(step: Step, attempt: Evidence) -> Card:
    tools = sentences.tools()
    known = [tools[call["tool"]] for call in step.calls if call.get("tool") in tools]
    if any(tool.asks_person for tool in known):
        return _asked(step)
    lines = tuple(_applied_line(step, call) for call in step.calls)
    if known and not any(tool.writes for tool in known):
        return Card(mark=READ, says=NOTHING, lines=tuple(replace(line, mark=READ) for line in lines), at=None)
    history = histories.of(step.escalations, attempt, names=step.names)
    says = "After approval." if history else f"All {len(lines)} calls, together." if len(lines) > 1 else ""
    return Card(mark=CALLS["applied"], says=says, lines=lines, at=None, history=history, changes=_changes(attempt))


def _applied_line(step: Step, call: Mapping[str, Any]) -> Line:
    index = call["index"]
    row = step.executions.get(index)
    sentence = sentences.applied(tool=row.tool, arguments=row.arguments, result=row.result) if row else _proposed(call)
    fates = tuple(fate(message) for message in step.effects.get(index, ()))
    mark = Mark(state=fates[-1].state, icon=fates[-1].icon, word=fates[-1].word) if fates else CALLS["applied"]
    last = fates[-1] if fates else None
    return Line(
        number=index + 1,
        sentence=sentence,
        mark=mark,
        fates=fates,
        note=last.note if last else "",
        next_check_at=last.next_check_at if last else None,
    )


def _undone(step: Step, attempt: Evidence) -> Card:
    return Card(
        mark=Mark(state="undone", icon="undo-2", word="Undone"),
        says=NOTHING,
        lines=_told_lines(step, attempt),
        at=None,
        changes=_changes(attempt),
        undone=True,
        history=histories.of(step.escalations, attempt, names=step.names),
    )


def _refused(step: Step, attempt: Evidence) -> Card:
    mark = Mark(state="failed", icon="ban", word="Refused")
    return Card(mark=mark, says=f"Nothing ran. {NOTHING}", lines=_told_lines(step, attempt), at=None)


def _held(step: Step, attempt: Evidence) -> Card:
    escalation = histories.asked_for(step.escalations, attempt)
    kind = histories.decided(escalation)
    lines = _told_lines(step, attempt)
    if kind in ("approve", "retry"):
        mark = Mark(state="held", icon="clock", word="Approved, not run yet")
        return Card(
            mark=mark, says="The approval is kept.", lines=lines, at=None, history=histories.told(escalation, names=step.names)
        )
    if kind in ("reject", "expire", "close", "answer"):
        return _rejected(step, attempt)
    return Card(
        mark=Mark(state="held", icon="hand", word="Waits for a reviewer"),
        says="Nothing has run yet.",
        lines=lines,
        at=None,
        escalation_id=escalation.id if escalation else None,
    )


def _rejected(step: Step, attempt: Evidence) -> Card:
    escalation = histories.before(step.escalations, attempt)
    kind = histories.decided(escalation)
    word, icon = {"": ("Stopped", "square"), "expire": ("Expired undecided", "timer")}.get(kind, ("Rejected", "x"))
    reasons = [_bare(call.told).partition(" Nothing of this step")[0] for call in attempt.calls if call.told]
    lines = tuple(replace(line, mark=CALLS["never_ran"], gone=True, note="", limit="") for line in _told_lines(step, attempt))
    history = histories.told(escalation, names=step.names) or tuple(reasons[:1])
    mark = Mark(state="undone", icon=icon, word=word)
    return Card(mark=mark, says=f"Nothing ran. {NOTHING}", lines=lines, at=None, history=history)


def _asked(step: Step) -> Card:
    escalation = next((row for row in reversed(step.escalations) if row.kind == "asked"), None)
    decided = histories.decided(escalation)
    word = "Answered" if decided else "Waits for a reviewer"
    mark = Mark(state="applied" if decided else "held", icon="user-round-check" if decided else "hand", word=word)
    lines = tuple(
        Line(number=call["index"] + 1, sentence=_proposed(call), mark=replace(mark, word="Answered" if decided else "Asked"))
        for call in step.calls
    )
    waits = escalation.id if escalation and not decided else None
    return Card(mark=mark, says=f"A person was asked. {NOTHING}", lines=lines, at=None, escalation_id=waits)


def _open(step: Step, attempt: Evidence) -> Card:
    if step.live:
        return _before_the_first(step)
    mark = Mark(state="undone", icon="unlink", word="Interrupted")
    lines = tuple(
        Line(number=call["index"] + 1, sentence=_proposed(call), mark=CALLS["undone"], gone=True) for call in step.calls
    )
    return Card(mark=mark, says=f"The worker was lost before it could commit. {NOTHING}", lines=lines, at=None)


def _broken(step: Step, attempt: Evidence) -> Card:
    """Draw an attempt that the machine, not a call, made impossible: nobody was told a reason, because none is theirs."""
    escalation = next((row for row in reversed(step.escalations) if row.ai_message_id == step.ai_message_id), None)
    mark = Mark(state="undone", icon="undo-2", word="Undone")
    lines = tuple(
        Line(number=call["index"] + 1, sentence=_proposed(call), mark=replace(CALLS["undone"], word="Not applied"), gone=True)
        for call in step.calls
    )
    waits = escalation.id if escalation and not histories.decided(escalation) else None
    return Card(
        mark=mark,
        says=f"It could not be finished. {NOTHING}",
        lines=lines,
        at=None,
        changes=_changes(attempt),
        undone=True,
        escalation_id=waits,
    )


# -- parts -------------------------------------------------------------------------------------------


def _told_lines(step: Step, attempt: Evidence) -> tuple[Line, ...]:
    """Return the lines of an attempt that was not applied, with the reason where it belongs."""
    seen = {call.index: call for call in attempt.calls}
    return tuple(_told_line(call, seen.get(call["index"]), attempt) for call in step.calls)


def _told_line(call: Mapping[str, Any], seen: Any, attempt: Evidence) -> Line:
    key = seen.fate if seen else "never_ran"
    mark = {"invalid": CALLS["failed"], "waits": replace(CALLS["waits"], icon="clock")}.get(key, CALLS[key])
    why = (_bare(seen.told) or seen.reason) if seen and key in ("failed", "invalid") else ""
    return Line(
        number=call["index"] + 1,
        sentence=_proposed(call),
        mark=mark,
        gone=key in GONE,
        why=why,
        note=seen.reason if seen and key == "held" else "",
        limit=_limit(attempt, call["index"]) if key == "held" else "",
    )


def _limit(attempt: Evidence, index: int) -> str:
    """Return what the rule that held a call measured and allows, with the rule's name and version."""
    verdicts = (attempt.outcome.problems if attempt.outcome else None) or []
    found: Mapping[str, Any] = next((verdict for verdict in verdicts if verdict.get("call_index") == index), {})
    version = f"v{found['version']}" if found.get("version") else "by default"
    rule = f"{str(found.get('rule', '')).replace('_', ' ')}, {version}"
    if found.get("measured") is None or found.get("allowed") is None or not found.get("currency"):
        return f"({rule})" if found else ""
    asked, allowed = (sentences.money(found[key], found["currency"]) for key in ("measured", "allowed"))
    return f"{asked} asked, {allowed} allowed ({rule})"


def _bare(told: str) -> str:
    for prefix in PREFIXES:
        told = told.removeprefix(prefix)
    return told


def _proposed(call: Mapping[str, Any]) -> str:
    return sentences.proposed(tool=call.get("tool") or "A call without a name", arguments=call.get("arguments"))


def _changes(attempt: Evidence) -> tuple[diffs.Record, ...]:
    return tuple(record for call in attempt.calls for record in call.changes)


def _arguments(calls: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls)
