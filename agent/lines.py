"""The lines of a batch card: one call each, with its sentence, what became of it, and why. Pure functions over rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent import histories
from agent.answers import ALONE
from ledger import sentences
from ledger.evidence import Evidence
from ledger.marks import CALLS, Mark
from ledger.models import Execution
from outbox.effects import Effect
from outbox.fates import Fate
from outbox.models import Message
from outbox.sends_after import Undo

Call = Mapping[str, Any]  # {"index", "id", "tool", "arguments"}
GONE = frozenset({"undone", "never_ran", "rejected", "dropped", "stopped"})  # struck through: not what the database says
PREFIXES = ("FAILED: ", "REJECTED: ", "WITHDRAWN: ", "EXPIRED: ", "ANSWERED: ", "ASKED: ", "NOT APPLIED: ")


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
    fate: Fate | None = None  # where its external effect stands
    follows: tuple[Effect, ...] = ()  # what followed from the call's own effect, such as a credit note from a refund
    undos: tuple[Undo, ...] = ()  # what can still be taken back of its effects


def asked(calls: Sequence[Call], *, mark: Mark, gone: bool = False) -> tuple[Line, ...]:
    """Return what the calls ask for, all under one mark."""
    return tuple(Line(number=call["index"] + 1, sentence=_proposed(call), mark=mark, gone=gone) for call in calls)


def applied(
    call: Call, *, execution: Execution | None, effects: Sequence[Message], undos: Mapping[int, Undo], note: str = ""
) -> Line:
    """Return what an applied call did, and where its external effects stand; `note` is what people changed of it."""
    seen = [Effect(message=message) for message in effects]
    stands = seen[0].fate if seen else None
    return Line(
        number=call["index"] + 1,
        sentence=_done(execution) if execution else _proposed(call),
        mark=Mark(state=stands.state, icon=stands.icon, word=stands.word) if stands else CALLS["applied"],
        fate=stands,
        follows=tuple(seen[1:]),
        undos=tuple(undos[message.id] for message in effects if message.id in undos),
        note=" ".join(filter(None, [note, stands.note if stands else ""])),
        next_check_at=stands.next_check_at if stands else None,
    )


def told(calls: Sequence[Call], *, attempt: Evidence, by: str = "a reviewer") -> tuple[Line, ...]:
    """Return the calls of an attempt, with the reason where it belongs; `by` is who made them what they are."""
    seen = {call.index: call for call in attempt.calls}
    return tuple(_told(call, seen.get(call["index"]), attempt, by) for call in calls)


def edited(call: Call, seen: Any, *, by: str) -> str:
    """Return what people changed of a call before it ran, in a sentence; empty when it ran as it was asked for."""
    said = histories.changed(call.get("arguments"), seen.arguments) if seen and isinstance(seen.arguments, dict) else ""
    return f"Changed by {by}: {said}." if said else ""


def never_ran(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the same calls, decided against."""
    return tuple(replace(line, mark=CALLS["never_ran"], gone=True, why="", note="", limit="") for line in lines)


def bare(told: str) -> str:
    """Return what the model was told about a call, without the word that begins it and what only the model needs."""
    for prefix in PREFIXES:
        told = told.removeprefix(prefix)
    return told.partition(" Nothing of this step")[0].removesuffix(f" {ALONE}")


def _told(call: Call, seen: Any, attempt: Evidence, by: str) -> Line:
    key = seen.fate if seen else "never_ran"
    mark = {"invalid": CALLS["failed"], "waits": replace(CALLS["waits"], icon="clock")}.get(key, CALLS[key])
    return Line(
        number=call["index"] + 1,
        sentence=_proposed({**call, "arguments": seen.arguments} if seen else call),
        mark=replace(mark, word=f"Removed by {by}") if key == "dropped" else mark,
        gone=key in GONE,
        why=(bare(seen.told) or seen.reason) if key in ("failed", "invalid") else "",
        note=seen.reason if key == "held" else edited(call, seen, by=by),
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
    measured, allowed = (sentences.money(found[key], found["currency"]) for key in ("measured", "allowed"))
    return f"{measured} asked, {allowed} allowed ({rule})"


def _proposed(call: Call) -> str:
    return sentences.proposed(tool=call.get("tool") or "A call without a name", arguments=call.get("arguments"))


def _done(row: Execution) -> str:
    return sentences.applied(tool=row.tool, arguments=row.arguments, result=row.result)
