"""The last phase: what the model reads about each call. Every call gets exactly one answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent.approvals import Change, Permission
from agent.validation import Problem, ProposedCall

Status = Literal["applied", "failed", "undone", "never_ran", "rejected", "dropped", "asked"]
No = Literal["REJECTED", "WITHDRAWN", "EXPIRED", "ANSWERED"]
AGAIN: Mapping[No, str] = {
    "REJECTED": "Do not send it again.",
    "WITHDRAWN": "Do not send it again.",
    "EXPIRED": "Send it again only if the staff member asks for it again.",
    "ANSWERED": "Follow the answer.",
}

UNDONE = (
    "NOT APPLIED: undone because another call of this step failed. Nothing of this step was saved."
    " Fix the failed call and resend the complete step."
)
NEVER_RAN = (
    "NOT APPLIED: never ran because an earlier call of this step failed. Nothing of this step was saved."
    " Fix the failed call and resend the complete step."
)
OTHERS_INVALID = (
    "NOT APPLIED: never ran because another call of this step was invalid. Nothing of this step was saved."
    " Fix the invalid call and resend the complete step."
)
ALONE = "Only this call was undone: do not resend those of this step that were applied."
DROPPED = "NOT APPLIED: a reviewer removed this call."
ASKED = "ASKED: a person was asked. Wait for the answer."


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to one call."""

    call_index: int
    status: Status
    text: str

    def row(self) -> dict[str, Any]:
        """Return the answer as it is stored."""
        return asdict(self)


def applied(results: Mapping[int, Mapping[str, Any]], *, told: Sequence[Answer] = ()) -> list[Answer]:
    """Answer a batch that committed: each call's result, self-describing, or else what was `told` of it in particular."""
    plain = {index: Answer(call_index=index, status="applied", text=_json(result)) for index, result in results.items()}
    return _in_order(plain | {answer.call_index: answer for answer in told})


def particular(
    results: Mapping[int, Mapping[str, Any]], *, failed: Mapping[int, str], permission: Permission | None
) -> list[Answer]:
    """Return the answers of a batch that commits which are not simply a call's result: they are kept with its outcome."""
    found = [Answer(call_index=index, status="failed", text=f"FAILED: {said} {ALONE}") for index, said in failed.items()]
    if permission is None:
        return found
    done = [
        Answer(call_index=index, status="applied", text=f"{said}: {_json(result)}")
        for index, result in results.items()
        if (said := _by_people(permission, index))
    ]
    return [*found, *done, *dropped(permission)]


def dropped(permission: Permission | None) -> list[Answer]:
    """Answer the calls that a reviewer took out of the batch."""
    return [
        Answer(call_index=index, status="dropped", text=" ".join(f"{DROPPED} {text} Do not send it again.".split()))
        for index, text in (permission.dropped if permission else {}).items()
    ]


def with_dropped(given: Sequence[Answer], permission: Permission | None) -> list[Answer]:
    """Return answers together with those of the calls that a reviewer took out, in the order of the calls."""
    return _in_order({answer.call_index: answer for answer in [*given, *dropped(permission)]})


def _by_people(permission: Permission, index: int) -> str:
    """Return how a call that people changed or performed was applied; empty when it ran as the model sent it."""
    changed = ", ".join(_change(change) for change in permission.changes.get(index, ()))
    if permission.performed_by is not None:
        return "APPLIED BY A PERSON" + (f" ({changed})" if changed else "")
    return f"APPLIED AS CHANGED BY A REVIEWER ({changed})" if changed else ""


def _change(change: Change) -> str:
    name, before, after = change
    return f"{name}: {_json(before)} → {_json(after)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _in_order(given: Mapping[int, Answer]) -> list[Answer]:
    return [answer for _, answer in sorted(given.items())]


def failed(calls: Sequence[ProposedCall], *, failed_call: int, sentence: str) -> list[Answer]:
    """Answer a batch that was rolled back: one reason, and what became of the others."""

    def one(index: int) -> Answer:
        if index == failed_call:
            return Answer(call_index=index, status="failed", text=f"FAILED: {sentence}")
        if index < failed_call:
            return Answer(call_index=index, status="undone", text=UNDONE)
        return Answer(call_index=index, status="never_ran", text=NEVER_RAN)

    return [one(call.index) for call in calls]


def all_failed(sentences: Mapping[int, str]) -> list[Answer]:
    """Answer a batch of calls that do not depend on each other, none of which is left."""
    return [Answer(call_index=index, status="failed", text=f"FAILED: {said}") for index, said in sentences.items()]


def refused(calls: Sequence[ProposedCall], *, problems: Sequence[Problem]) -> list[Answer]:
    """Answer a batch of which nothing ran because a call was invalid."""
    sentences = {problem.call_index: problem.sentence for problem in problems}
    return [
        Answer(call_index=call.index, status="failed", text=f"FAILED: {sentences[call.index]}")
        if call.index in sentences
        else Answer(call_index=call.index, status="never_ran", text=OTHERS_INVALID)
        for call in calls
    ]


def rejected(calls: Sequence[ProposedCall], *, reason: str, word: No = "REJECTED") -> list[Answer]:
    """Answer a batch that will not run: somebody said no or answers instead, it was withdrawn, or nobody decided in time."""
    text = f"{word}: {reason} Nothing of this step was saved. {AGAIN[word]}"
    return [Answer(call_index=call.index, status="rejected", text=text) for call in calls]


def asked(calls: Sequence[ProposedCall]) -> list[Answer]:
    """Answer the single call that asks a person."""
    return [Answer(call_index=call.index, status="asked", text=ASKED) for call in calls]


def restored(rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Return answers that were given before, from their rows."""
    return [Answer(**row) for row in rows]
