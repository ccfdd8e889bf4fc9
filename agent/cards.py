"""Batch cards: what became of the tool calls of one step, in words. Pure functions over rows; a new tool needs nothing here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agent import histories, lines
from agent.lines import Call, Line
from agent.waits import Waits
from escalations.models import Escalation
from ledger import diffs, marks, numbering, sentences
from ledger.evidence import Evidence
from ledger.marks import CALLS, Mark
from ledger.models import Execution
from outbox.models import Message
from outbox.sends_after import Undo

RUNNING = Mark(state="queued", icon="circle-dashed", word="Running")
NEXT = Mark(state="queued", icon="circle-dashed", word="Next")
WAITS = Mark(state="held", icon="hand", word="Waits for a reviewer")
UNDONE = Mark(state="undone", icon="undo-2", word="Undone")
READ = Mark(state="queued", icon="eye", word="Read")
DRIFTED = Mark(state="held", icon="history", word="Changed since the approval")
NOTHING = "Nothing was changed."
# What a person made of a batch that did not run. Without a decision somebody stopped the agent.
NOES = {
    "": ("Stopped", "square"),
    "expire": ("Expired undecided", "timer"),
    "withdraw": ("Withdrawn", "undo-2"),
    "answer": ("Answered instead", "messages-square"),
    "approve": ("Removed by a reviewer", "x"),  # every call of it
    "close": ("Closed", "x"),
}
ASKED = {"answer": Mark(state="applied", icon="user-round-check", word="Answered"), "expire": marks.DECISIONS["expire"]}


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
    waits: Waits | None = None

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
    undos: Mapping[int, Undo] = field(default_factory=dict)  # by message
    escalations: Sequence[Escalation] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    signers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    waits: Waits | None = None  # what the conversation waits for
    live: bool = False  # a worker runs the thread right now

    def history(self, attempt: Evidence) -> tuple[str, ...]:
        """Return a line for each decision that let the attempt run."""
        return histories.of(self.escalations, attempt, names=self.names, signers=self.signers)

    def told(self, escalation: Escalation | None) -> tuple[str, ...]:
        """Return the line of a decided escalation."""
        return histories.told(escalation, names=self.names, signers=self.signers)

    def lines(self, attempt: Evidence) -> tuple[Line, ...]:
        """Return the calls as the attempt leaves them."""
        by = histories.editor(self.escalations, attempt, names=self.names)
        return lines.told(self.calls, attempt=attempt, by=by)

    def waiting(self, escalation: Escalation | None) -> dict[str, Any]:
        """Return what a card that waits for an escalation says of it."""
        if escalation is None:
            return {}
        waits = self.waits if self.waits and self.waits.escalation == escalation.id else None
        return {"escalation_id": escalation.id, "waits": waits}


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
        "drifted": _drifted,
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
    done = _done(step, attempt)
    if known and not any(tool.writes for tool in known):
        return Card(mark=READ, says=NOTHING, lines=tuple(replace(line, mark=READ) for line in done))
    mark = replace(CALLS["applied"], word="Applied in part") if attempt.outcome and attempt.outcome.partial else CALLS["applied"]
    return Card(mark=mark, says=_says(step, attempt, done), lines=done, history=step.history(attempt), changes=_changes(attempt))


def _done(step: Step, attempt: Evidence) -> tuple[Line, ...]:
    """Return what was applied, and beside it what a reviewer removed or what failed alone."""
    seen = {call.index: call for call in attempt.calls}
    by = histories.editor(step.escalations, attempt, names=step.names)

    def one(call: Call, otherwise: Line) -> Line:
        at, what = call["index"], seen.get(call["index"])
        if at not in step.executions and what is not None and what.fate != "applied":
            return otherwise
        note = lines.edited(call, what, by=by)
        return lines.applied(
            call, execution=step.executions.get(at), effects=step.effects.get(at, ()), undos=step.undos, note=note
        )

    return tuple(map(one, step.calls, step.lines(attempt)))


def _says(step: Step, attempt: Evidence, done: Sequence[Line]) -> str:
    """Return how a batch came to be applied."""
    people = [row.performed_by for row in step.executions.values() if row.performed_by is not None]
    if people:
        return f"By {step.names.get(people[0], 'a person')}, instead of the agent."
    if attempt.outcome and attempt.outcome.partial:
        failed = sum(line.mark == CALLS["failed"] for line in done)
        return f"{failed} of {len(done)} calls failed alone; the others do not depend on {'it' if failed == 1 else 'them'}."
    if histories.let_run(step.escalations, attempt):
        return "After approval."
    return f"All {len(done)} calls, together." if len(done) > 1 else ""


def _undone(step: Step, attempt: Evidence) -> Card:
    return Card(
        mark=UNDONE,
        says=NOTHING,
        lines=step.lines(attempt),
        changes=_changes(attempt),
        undone=True,
        history=step.history(attempt),
    )


def _refused(step: Step, attempt: Evidence) -> Card:
    mark = Mark(state="failed", icon="ban", word="Refused")
    return Card(mark=mark, says=f"Nothing ran. {NOTHING}", lines=step.lines(attempt))


def _held(step: Step, attempt: Evidence) -> Card:
    escalation = histories.asked_for(step.escalations, attempt)
    kind = histories.decided(escalation)
    if kind in histories.LETS_RUN:
        return _not_run_yet(step, attempt, escalation)
    if kind:
        return _rejected(step, attempt)
    return Card(mark=WAITS, says="Nothing has run yet.", lines=step.lines(attempt), **step.waiting(escalation))


def _not_run_yet(step: Step, attempt: Evidence, escalation: Escalation | None) -> Card:
    word = "Taken over, not run yet" if histories.decided(escalation) == "take_over" else "Approved, not run yet"
    mark = Mark(state="held", icon="clock", word=word)
    says = "The decision is kept."
    return Card(mark=mark, says=says, lines=step.lines(attempt), history=step.told(escalation))


def _drifted(step: Step, attempt: Evidence) -> Card:
    """Draw what was approved and did not run, because it would not have done what the reviewer saw."""
    escalation = histories.asked_for(step.escalations, attempt)
    if step.attempts[-1].id == attempt.id and histories.decided(escalation) in histories.LETS_RUN:
        return _not_run_yet(step, attempt, escalation)
    asks = escalation is not None and not histories.decided(escalation)
    says = "The data changed since the approval; the reviewer looks again." if asks else NOTHING
    waiting = replace(CALLS["waits"], icon="clock", word="Waits for a reviewer") if asks else CALLS["stopped"]
    return Card(
        mark=DRIFTED,
        says=f"Nothing ran. {says}",
        lines=tuple(replace(line, mark=waiting, gone=not asks, why="") for line in step.lines(attempt)),
        history=step.history(attempt),
        **(step.waiting(escalation) if asks else {}),
    )


def _rejected(step: Step, attempt: Evidence) -> Card:
    """Draw what a person decided against; who stops the agent decides so too, without an escalation."""
    escalation = histories.before(step.escalations, attempt)
    kind = histories.decided(escalation)
    word, icon = NOES.get(kind, ("Rejected", "x"))
    reasons = [lines.bare(call.told) for call in attempt.calls if call.told]
    return Card(
        mark=Mark(state="undone", icon=icon, word=word),
        says=f"Nothing ran. {NOTHING}",
        lines=step.lines(attempt) if kind == "approve" else lines.never_ran(step.lines(attempt)),
        history=step.told(escalation) or tuple(reasons[:1]),
    )


def _asked(step: Step) -> Card:
    escalation = next((row for row in reversed(step.escalations) if row.kind == "asked"), None)
    says = f"A person was asked. {NOTHING}"
    if kind := histories.decided(escalation):
        mark = ASKED.get(kind, marks.DECISIONS[kind])
        return Card(mark=mark, says=says, lines=lines.asked(step.calls, mark=mark))
    asked = lines.asked(step.calls, mark=replace(WAITS, word="Asked"))
    return Card(mark=WAITS, says=says, lines=asked, **step.waiting(escalation))


def _open(step: Step, attempt: Evidence) -> Card:
    if step.live:
        return _before_the_first(step)
    mark = Mark(state="undone", icon="unlink", word="Interrupted")
    says = f"The worker was lost before it could commit. {NOTHING}"
    return Card(mark=mark, says=says, lines=lines.asked(step.calls, mark=CALLS["undone"], gone=True))


def _broken(step: Step, attempt: Evidence) -> Card:
    """Draw an attempt that the machine, not a call, made impossible: nobody was told a reason, because none is theirs."""
    waits = next((row for row in reversed(step.escalations) if not histories.decided(row)), None)
    known = NOTHING if attempt.result == "bug" else "As far as can be known, nothing was changed."
    return Card(
        mark=UNDONE,
        says=f"It could not be finished. {known}",
        lines=lines.asked(step.calls, mark=replace(CALLS["undone"], word="Not applied"), gone=True),
        changes=_changes(attempt),
        undone=True,
        **step.waiting(waits),
    )


# -- parts -------------------------------------------------------------------------------------------


def _changes(attempt: Evidence) -> tuple[diffs.Record, ...]:
    return tuple(record for call in attempt.calls for record in call.changes)


def _arguments(calls: Sequence[Call]) -> str:
    return "\n".join(f"{call.get('tool')} {json.dumps(call.get('arguments'), ensure_ascii=False)}" for call in calls)
