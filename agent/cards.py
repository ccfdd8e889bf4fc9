"""Batch cards: what became of the tool calls of one step, in words. Pure functions over rows; a new tool needs nothing here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from agent import histories, lines
from agent.lines import Call, Line
from escalations.models import Escalation
from ledger import diffs, numbering, sentences
from ledger.evidence import Evidence
from ledger.marks import CALLS, Mark
from ledger.models import Execution
from outbox.models import Message

RUNNING = Mark(state="queued", icon="circle-dashed", word="Running")
NEXT = Mark(state="queued", icon="circle-dashed", word="Next")
WAITS = Mark(state="held", icon="hand", word="Waits for a reviewer")
UNDONE = Mark(state="undone", icon="undo-2", word="Undone")
READ = Mark(state="queued", icon="eye", word="Read")
NOTHING = "Nothing was changed."


@dataclass(frozen=True, kw_only=True)
class Card:
    """One attempt at a batch, or the batch itself while there is none."""

    mark: Mark
    says: str
    lines: tuple[Line, ...]
    at: datetime | None = None
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
    calls: Sequence[Call]
    attempts: Sequence[Evidence] = ()
    executions: Mapping[int, Execution] = field(default_factory=dict)
    effects: Mapping[int, Sequence[Message]] = field(default_factory=dict)
    escalations: Sequence[Escalation] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    live: bool = False  # a worker runs the thread right now


def cards(step: Step) -> list[Card]:
    """Return the cards of a step: what was superseded is left to the audit pages."""
    shown = numbering.shown(step.attempts)
    if not shown:
        return [_before_the_first(step)]
    return [_card(step, attempt) for attempt in shown]


def _before_the_first(step: Step) -> Card:
    mark = RUNNING if step.live else NEXT
    says = "Nothing is certain before it is committed." if step.live else "Not run yet. " + NOTHING
    return Card(mark=replace(mark, word="Working") if step.live else mark, says=says, lines=lines.asked(step.calls, mark=mark))


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
    at = attempt.outcome.closed_at if attempt.outcome else attempt.at
    return replace(card, at=at, attempt_id=attempt.id, arguments=_arguments(step.calls))


# -- one function for each outcome -------------------------------------------------------------------


def _applied(step: Step, attempt: Evidence) -> Card:
    tools = sentences.tools()
    known = [tools[call["tool"]] for call in step.calls if call.get("tool") in tools]
    if any(tool.asks_person for tool in known):
        return _asked(step)
    done = tuple(
        lines.applied(call, execution=step.executions.get(call["index"]), effects=step.effects.get(call["index"], ()))
        for call in step.calls
    )
    if known and not any(tool.writes for tool in known):
        return Card(mark=READ, says=NOTHING, lines=tuple(replace(line, mark=READ) for line in done))
    history = histories.of(step.escalations, attempt, names=step.names)
    says = "After approval." if history else f"All {len(done)} calls, together." if len(done) > 1 else ""
    return Card(mark=CALLS["applied"], says=says, lines=done, history=history, changes=_changes(attempt))


def _undone(step: Step, attempt: Evidence) -> Card:
    return Card(
        mark=UNDONE,
        says=NOTHING,
        lines=lines.told(step.calls, attempt=attempt),
        changes=_changes(attempt),
        undone=True,
        history=histories.of(step.escalations, attempt, names=step.names),
    )


def _refused(step: Step, attempt: Evidence) -> Card:
    mark = Mark(state="failed", icon="ban", word="Refused")
    return Card(mark=mark, says=f"Nothing ran. {NOTHING}", lines=lines.told(step.calls, attempt=attempt))


def _held(step: Step, attempt: Evidence) -> Card:
    escalation = histories.asked_for(step.escalations, attempt)
    kind = histories.decided(escalation)
    waiting = lines.told(step.calls, attempt=attempt)
    if kind in histories.LETS_RUN:
        mark = Mark(state="held", icon="clock", word="Approved, not run yet")
        history = histories.told(escalation, names=step.names)
        return Card(mark=mark, says="The approval is kept.", lines=waiting, history=history)
    if kind:
        return _rejected(step, attempt)
    return Card(
        mark=WAITS,
        says="Nothing has run yet.",
        lines=waiting,
        escalation_id=escalation.id if escalation else None,
    )


def _rejected(step: Step, attempt: Evidence) -> Card:
    """Draw what a person decided against; who stops the agent decides so too, without an escalation."""
    escalation = histories.before(step.escalations, attempt)
    kind = histories.decided(escalation)
    word, icon = {"": ("Stopped", "square"), "expire": ("Expired undecided", "timer")}.get(kind, ("Rejected", "x"))
    reasons = [lines.bare(call.told) for call in attempt.calls if call.told]
    return Card(
        mark=Mark(state="undone", icon=icon, word=word),
        says=f"Nothing ran. {NOTHING}",
        lines=lines.never_ran(lines.told(step.calls, attempt=attempt)),
        history=histories.told(escalation, names=step.names) or tuple(reasons[:1]),
    )


def _asked(step: Step) -> Card:
    escalation = next((row for row in reversed(step.escalations) if row.kind == "asked"), None)
    says = f"A person was asked. {NOTHING}"
    if histories.decided(escalation):
        mark = Mark(state="applied", icon="user-round-check", word="Answered")
        return Card(mark=mark, says=says, lines=lines.asked(step.calls, mark=mark))
    waits = escalation.id if escalation else None
    return Card(mark=WAITS, says=says, lines=lines.asked(step.calls, mark=replace(WAITS, word="Asked")), escalation_id=waits)


def _open(step: Step, attempt: Evidence) -> Card:
    if step.live:
        return _before_the_first(step)
    mark = Mark(state="undone", icon="unlink", word="Interrupted")
    says = f"The worker was lost before it could commit. {NOTHING}"
    return Card(mark=mark, says=says, lines=lines.asked(step.calls, mark=CALLS["undone"], gone=True))


def _broken(step: Step, attempt: Evidence) -> Card:
    """Draw an attempt that the machine, not a call, made impossible: nobody was told a reason, because none is theirs."""
    waits = next((row.id for row in reversed(step.escalations) if not histories.decided(row)), None)
    known = NOTHING if attempt.result == "bug" else "As far as can be known, nothing was changed."
    return Card(
        mark=UNDONE,
        says=f"It could not be finished. {known}",
        lines=lines.asked(step.calls, mark=replace(CALLS["undone"], word="Not applied"), gone=True),
        changes=_changes(attempt),
        undone=True,
        escalation_id=waits,
    )


# -- parts -------------------------------------------------------------------------------------------


def _changes(attempt: Evidence) -> tuple[diffs.Record, ...]:
    return tuple(record for call in attempt.calls for record in call.changes)


def _arguments(calls: Sequence[Call]) -> str:
    return "\n".join(f"{call.get('tool')} {json.dumps(call.get('arguments'), ensure_ascii=False)}" for call in calls)
