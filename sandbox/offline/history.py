"""A conversation as the offline model reads it: who it is about, and turn by turn what was asked, called and answered."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from sandbox.offline.tokens import Setting

REVIEWER = "A reviewer answers:"
NOTICE = "Notice:"
MISBEHAVE = re.compile(r"\[\s*misbehave\s*:\s*([a-z ]+?)\s*\]", re.IGNORECASE)
NOES = ("REJECTED:", "WITHDRAWN:", "EXPIRED:", "ANSWERED:")
REFUSALS = ("FAILED:", "NOT APPLIED:", *NOES)
REMOVED = "NOT APPLIED: a reviewer removed this call."
# A call that a person changed or carried out: "APPLIED AS CHANGED BY A REVIEWER (amount_minor: 32000 → 28000): {…}".
BY_PEOPLE = re.compile(r"APPLIED (AS CHANGED BY A REVIEWER|BY A PERSON)(?: \((.*?)\))?: (?=\{)", re.DOTALL)
CHANGE = re.compile(r"(\w+): (.*?) → (.*?)(?=, \w+: .*? → |$)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A call that was made and what came back."""

    tool: str
    arguments: dict[str, Any]  # as applied: with what a person changed
    text: str
    error: bool
    changes: tuple[tuple[str, Any, Any], ...] = ()  # of a person: field, sent, applied

    @property
    def undone(self) -> bool:
        """Say whether the call itself was sound: another one of its step failed."""
        return self.text.startswith("NOT APPLIED:") and not self.removed

    @property
    def rejected(self) -> bool:
        """Say whether it may not run: a person said no, or nobody said yes."""
        return self.text.startswith(NOES)

    @property
    def removed(self) -> bool:
        """Say whether a person took it out of a step that was applied."""
        return self.text.startswith(REMOVED)

    @property
    def by_person(self) -> bool:
        """Say whether a person carried it out."""
        return self.text.startswith("APPLIED BY A PERSON")

    @property
    def result(self) -> dict[str, Any]:
        """Return the result of an applied call; empty when there is none."""
        try:
            found = json.loads(BY_PEOPLE.sub("", self.text, count=1))
        except ValueError:
            return {}
        return found if isinstance(found, dict) and not self.error else {}


@dataclass(frozen=True, kw_only=True)
class Round:
    """One step: its calls with their answers."""

    calls: tuple[Answered, ...]

    @property
    def failed(self) -> bool:
        """Say whether any call was not applied."""
        return any(call.error for call in self.calls)

    @property
    def only_reads(self) -> bool:
        """Say whether the step did nothing but look up."""
        return all(call.tool == "LookUpCustomer" for call in self.calls)


@dataclass(kw_only=True)
class Turn:
    """What a person said, and what was done about it."""

    text: str
    reviewer: bool
    flaws: frozenset[str]
    notices: tuple[str, ...] = ()
    rounds: list[Round] = field(default_factory=list)
    said: str = ""

    @property
    def writes(self) -> list[Round]:
        """Return the steps that tried to change something."""
        return [step for step in self.rounds if not step.only_reads]


@dataclass(frozen=True, kw_only=True)
class History:
    """The whole conversation."""

    setting: Setting
    turns: tuple[Turn, ...]
    digest: str  # the same for the same history, in every process

    @property
    def turn(self) -> Turn:
        """Return the turn to answer."""
        return self.turns[-1]

    @property
    def request(self) -> Turn:
        """Return the staff member's turn that the current one is about."""
        return next((turn for turn in reversed(self.turns) if not turn.reviewer), self.turns[-1])

    @property
    def since_request(self) -> tuple[Turn, ...]:
        """Return the staff member's turn and every reviewer's answer after it."""
        start = max(index for index, turn in enumerate(self.turns) if turn is self.request)
        return self.turns[start:]


def read(messages: Sequence[BaseMessage]) -> History:
    """Return the conversation that these messages are."""
    turns: list[Turn] = []
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append(_turn(str(message.text)))
        elif isinstance(message, AIMessage) and turns:
            if message.tool_calls or message.invalid_tool_calls:
                turns[-1].rounds.append(_round(message, answers))
            else:
                turns[-1].said = str(message.text)
    return History(setting=_setting(messages), turns=tuple(turns or [_turn("")]), digest=_digest(messages))


def _setting(messages: Sequence[BaseMessage]) -> Setting:
    prompt = "\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))

    def line(name: str, pattern: str) -> str:
        found = re.findall(rf"^\s*{name}:\s*({pattern})\s*$", prompt, re.MULTILINE)
        return found[-1] if found else ""

    today = line("today", r"\d{4}-\d{2}-\d{2}")
    return Setting(
        customer_id=int(line("customer_id", r"\d{1,18}") or 0),
        currency=line("currency", "[A-Z]{3}"),
        today=date.fromisoformat(today) if today else None,
    )


def _turn(text: str) -> Turn:
    lines = text.strip().splitlines()
    notices = tuple(line for line in lines if line.startswith(NOTICE))
    rest = "\n".join(line for line in lines if not line.startswith(NOTICE)).strip()
    reviewer = rest.startswith(REVIEWER)
    flaws = frozenset(re.sub(r"\s+", " ", flaw.lower()) for flaw in MISBEHAVE.findall(rest))
    words = MISBEHAVE.sub(" ", rest.removeprefix(REVIEWER)).strip()
    return Turn(text=words, reviewer=reviewer, flaws=flaws, notices=notices)


def _round(message: AIMessage, answers: Sequence[ToolMessage]) -> Round:
    found: list[Answered] = []
    named = {str(answer.tool_call_id): answer for answer in answers}
    calls = [(call["id"], call["name"], dict(call["args"])) for call in message.tool_calls]
    calls += [(bad["id"], bad["name"] or "", {}) for bad in message.invalid_tool_calls]
    for number, tool, arguments in calls:
        answer = named.get(str(number))
        text = str(answer.text) if answer else "FAILED: no answer came."
        error = answer is None or answer.status == "error" or text.startswith(REFUSALS)
        changes = _changes(text)
        found.append(
            Answered(
                tool=tool,
                arguments=_changed(arguments, changes),
                text=text,
                error=error and not text.startswith(REMOVED),
                changes=changes,
            )
        )
    return Round(calls=tuple(found))


def _changes(text: str) -> tuple[tuple[str, Any, Any], ...]:
    """Return what a person changed before a call ran."""
    intervened = BY_PEOPLE.match(text)
    return tuple((name, _value(old), _value(new)) for name, old, new in CHANGE.findall(intervened[2] or "")) if intervened else ()


def _changed(arguments: dict[str, Any], changes: Sequence[tuple[str, Any, Any]]) -> dict[str, Any]:
    changed = arguments | {name: new for name, _, new in changes}
    return {name: value for name, value in changed.items() if value is not None}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _digest(messages: Sequence[BaseMessage]) -> str:
    told = [
        [message.type, str(message.text), [[call["name"], call["args"]] for call in getattr(message, "tool_calls", [])]]
        for message in messages
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
