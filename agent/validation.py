"""The first phase: are all calls of a batch sound? Pure; one bad call and nothing runs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agent.tools import Arguments, Tool
from ledger.fingerprints import fingerprint

MOST_CALLS = 20
DEEPEST = 8  # levels of nesting in arguments
LARGEST = 16_000  # characters of arguments as JSON


@dataclass(frozen=True, kw_only=True)
class ProposedCall:
    """One call as the model sent it. `problem` says what was already wrong with its JSON or its id."""

    index: int
    id: str
    tool: str
    arguments: dict[str, Any] | None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class ValidCall:
    """One call that may run."""

    index: int
    id: str
    tool: Tool
    arguments: Arguments

    @property
    def plain(self) -> dict[str, Any]:
        """Return the validated arguments as JSON values, defaults left out as the model left them."""
        return self.arguments.model_dump(mode="json", exclude_unset=True)

    @property
    def fingerprint(self) -> bytes:
        """Return what makes this call the same call again."""
        return fingerprint(tool=self.tool.name, arguments=self.plain)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why one call cannot run, in a sentence for the model and staff."""

    call_index: int
    sentence: str


def check(calls: Sequence[ProposedCall], *, tools: Mapping[str, Tool], subject: int) -> tuple[list[ValidCall], list[Problem]]:
    """Return the calls that are sound and the problems of the others; run nothing unless there are no problems."""
    problems = {problem.call_index: problem for problem in _of_batch(calls, tools=tools)}
    sound: list[ValidCall] = []
    for call in calls:
        try:
            sound.append(_check_one(call, tools=tools, subject=subject))
        except _Unsound as reason:
            problems.setdefault(call.index, Problem(call_index=call.index, sentence=str(reason)))
    return [call for call in sound if call.index not in problems], sorted(problems.values(), key=lambda p: p.call_index)


class _Unsound(Exception):
    """The call cannot run."""


def _of_batch(calls: Sequence[ProposedCall], *, tools: Mapping[str, Tool]) -> list[Problem]:
    """Return what is wrong with the batch as a whole."""
    if len(calls) > MOST_CALLS:
        sentence = f"A step may have at most {MOST_CALLS} calls; this one has {len(calls)}."
        return [Problem(call_index=call.index, sentence=sentence) for call in calls]
    problems = []
    repeated = {name for name, count in Counter(call.id for call in calls).items() if count > 1}
    for call in calls:
        if not call.id or call.id in repeated:
            problems.append(Problem(call_index=call.index, sentence="The call's id is empty or used twice in this step."))
        tool = tools.get(call.tool)
        if tool and tool.asks_person and len(calls) > 1:
            problems.append(Problem(call_index=call.index, sentence=f"{tool.name} must be the only call of its step."))
    return problems


def _check_one(call: ProposedCall, *, tools: Mapping[str, Tool], subject: int) -> ValidCall:
    if call.problem:
        raise _Unsound(call.problem)
    tool = tools.get(call.tool)
    if tool is None:
        raise _Unsound(f"There is no tool of this name. The tools are: {', '.join(tools)}.")
    arguments = _parse(tool, _plain(call.arguments))
    if arguments.customer_id != subject:
        raise _Unsound(f"Customer {arguments.customer_id} does not exist in this conversation; it is about customer {subject}.")
    return ValidCall(index=call.index, id=call.id, tool=tool, arguments=arguments)


def _plain(arguments: dict[str, Any] | None) -> str:
    """Return the arguments as JSON text, or refuse what no database column and no checkpoint can hold."""
    try:
        text = json.dumps(arguments, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise _Unsound("The arguments are not plain JSON.") from error
    if arguments is None or len(text) > LARGEST or _depth(arguments) > DEEPEST or "\\u0000" in text:
        raise _Unsound("The arguments must be one small JSON object without control characters.")
    return text


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_depth(item) for item in inner), default=0)


def _parse(tool: Tool, text: str) -> Arguments:
    try:
        # JSON mode: dates are strings there, and everything else stays strict
        return tool.arguments.model_validate_json(text)
    except ValidationError as error:
        raise _Unsound(_sentence(error)) from error


def _sentence(error: ValidationError) -> str:
    """Return the first problems in words, without the values that were sent."""
    said = [f"{where}: {message}" if where else message for where, message in parts(error)[:3]]
    return "Invalid argument " + "; ".join(said) + "." if said else "Invalid arguments."


def parts(error: ValidationError) -> list[tuple[str, str]]:
    """Return each problem as its field (empty: the call as a whole) and what is wrong, without the values that were sent."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        (".".join(str(step) for step in item["loc"]), item["msg"].removeprefix("Value error, ").rstrip(".")) for item in found
    ]
