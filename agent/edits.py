"""What people change of a proposed step, judged as the model's own calls are, and said in the same words."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agent import validation
from agent.tools import registry
from agent.validation import ProposedCall


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why one field of one call cannot stay so; an empty field means the call as a whole."""

    call_index: int
    field: str
    sentence: str


def check(calls: Sequence[Mapping[str, Any]], *, subject: int) -> list[Fault]:
    """Return what is wrong with changed calls, field by field; what is right with all of them may run as one batch."""
    proposed = [ProposedCall(index=c["index"], id=c["id"], tool=c["tool"], arguments=c["arguments"]) for c in calls]
    _, problems = validation.check(proposed, tools=registry(), subject=subject)
    by_index = {call.index: call for call in proposed}
    return [fault for problem in problems for fault in _fields(by_index[problem.call_index], problem.sentence)]


def _fields(call: ProposedCall, sentence: str) -> list[Fault]:
    """Return a fault for each field that the tool's model refuses; else one for the whole call, with its sentence."""
    tool = registry().get(call.tool)
    try:
        if tool is not None and call.arguments is not None:
            tool.arguments.model_validate_json(json.dumps(call.arguments, ensure_ascii=False))
    except (ValidationError, ValueError) as error:
        if isinstance(error, ValidationError):
            return [Fault(call_index=call.index, field=field, sentence=words) for field, words in validation.parts(error)]
    return [Fault(call_index=call.index, field="", sentence=sentence)]
