"""What a person is asked, as data: the value of the interrupt and the payload of the escalation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage

from agent import validation
from agent.tools import Tool
from agent.validation import ProposedCall

Kind = Literal["rollbacks", "approval", "asked", "infrastructure", "budget"]
# Before answers the calls of the newest step still wait for theirs; after answers the conversation is complete.
Phase = Literal["before_answers", "after_answers"]
Question = dict[str, Any]

UNREACHABLE_MODEL = "The language model could not be reached. Nothing is lost; the conversation can go on from here."
UNUSABLE_MODEL = "The language model refused this conversation as it is."
ENDLESS = "The language model's answer did not come to an end. It was cut off; nothing was run because of it."
DATABASE = "The database failed while this step ran. As far as can be known nothing of it was saved; it can be run again safely."
UNEXPECTED = "Something unexpected failed. Nothing of this step was saved."
DRIFTED = "What would happen now is not what was approved. Nothing was run."


def ask(
    kind: Kind,
    *,
    phase: Phase,
    reason: str,
    step: AIMessage | None = None,
    generation: int = 0,
    tools: Mapping[str, Tool] | None = None,
    subject: int = 0,
    staff_message: str = "",
    attempt_id: str | None = None,
    verdicts: Sequence[Mapping[str, Any]] = (),
    question: str | None = None,
    drifted_from: int | None = None,
) -> Question:
    """Return the question; `step` is the message whose calls it is about, `drifted_from` the decision that could not be run."""
    asked: Question = {
        "kind": kind,
        "phase": phase,
        "reason": reason,
        "staff_message": staff_message,
        "attempt_id": attempt_id,
        "ai_message_id": step.id if step else None,
        "generation": generation,
        "calls": proposals(calls_of(step), tools=tools or {}, subject=subject) if step else [],
        "verdicts": [dict(verdict) for verdict in verdicts],
    }
    more = {"question": question, "drifted_from": drifted_from}
    return asked | {name: value for name, value in more.items() if value}


def calls_of(step: AIMessage) -> tuple[ProposedCall, ...]:
    """Return the calls of a message as the model sent them, each with what was wrong with its JSON."""
    problems = step.additional_kwargs.get("problems", {})

    def one(index: int, call: Any) -> ProposedCall:
        problem = problems.get(str(index), {}).get("sentence")
        arguments = None if problem else dict(call["args"])
        return ProposedCall(index=index, id=str(call["id"]), tool=call["name"], arguments=arguments, problem=problem)

    return tuple(one(index, call) for index, call in enumerate(step.tool_calls))


def proposals(calls: Sequence[ProposedCall], *, tools: Mapping[str, Tool], subject: int) -> list[dict[str, Any]]:
    """Return calls as data, each one that is sound said in words."""
    sound, _ = validation.check(calls, tools=tools, subject=subject)
    words = {call.index: call.tool.proposed(call.arguments) for call in sound}

    def one(call: ProposedCall) -> dict[str, Any]:
        said = words.get(call.index, "")
        return {"index": call.index, "id": call.id, "tool": call.tool, "arguments": call.arguments, "proposed": said}

    return [one(call) for call in calls]
