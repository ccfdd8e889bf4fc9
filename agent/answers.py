"""The last phase: what the model reads about each call. Every call gets exactly one answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent.validation import Problem, ProposedCall

Status = Literal["applied", "failed", "undone", "never_ran", "rejected", "asked"]
No = Literal["REJECTED", "WITHDRAWN", "EXPIRED"]

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


def applied(results: Mapping[int, Mapping[str, Any]]) -> list[Answer]:
    """Answer a batch that committed: each call's result, self-describing."""
    return [
        Answer(call_index=index, status="applied", text=json.dumps(result, ensure_ascii=False, sort_keys=True))
        for index, result in sorted(results.items())
    ]


def failed(calls: Sequence[ProposedCall], *, failed_call: int, sentence: str) -> list[Answer]:
    """Answer a batch that was rolled back: one reason, and what became of the others."""

    def one(index: int) -> Answer:
        if index == failed_call:
            return Answer(call_index=index, status="failed", text=f"FAILED: {sentence}")
        if index < failed_call:
            return Answer(call_index=index, status="undone", text=UNDONE)
        return Answer(call_index=index, status="never_ran", text=NEVER_RAN)

    return [one(call.index) for call in calls]


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
    """Answer a batch that a person said no to, that whoever asked for it withdrew, or that nobody decided about in time."""
    again = "Send it again only if the staff member asks for it again." if word == "EXPIRED" else "Do not send it again."
    text = f"{word}: {reason} Nothing of this step was saved. {again}"
    return [Answer(call_index=call.index, status="rejected", text=text) for call in calls]


def asked(calls: Sequence[ProposedCall]) -> list[Answer]:
    """Answer the single call that asks a person."""
    return [Answer(call_index=call.index, status="asked", text=ASKED) for call in calls]


def restored(rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Return answers that were given before, from their rows."""
    return [Answer(**row) for row in rows]
