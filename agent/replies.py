"""One answer of the model, collected chunk by chunk and made safe to remember: what is wrong with a call stays with it."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from agent import plain

CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
# What providers accept when the history is sent back to them; anything else would poison the thread for good.
ID, NAME = re.compile(r"[A-Za-z0-9_-]{1,40}"), re.compile(r"[A-Za-z0-9_-]{1,64}")
TOKENS = ("input_tokens", "output_tokens", "total_tokens")
RAW_KEPT = 2_000  # characters of unreadable arguments that people can read later
# More than any sound answer has; a model that never ends would fill memory, the thread's state and its pages.
LONGEST, MOST_CALLS = 300_000, 100  # characters of text and arguments; calls
MOST_TOKENS = 10**9  # in one chunk's count, which is the provider's word and may be anything

TRUNCATED = "The answer was cut off before its end. Send a shorter step, complete."
BAD_ID = "The call's id was empty or used twice in this step. Send the step again."
BAD_NAME = "There is no tool of this name."
NOTHING_SAID = "I have no answer to that. Please say it in other words."


@dataclass(kw_only=True)
class RawCall:
    """One tool call as its pieces arrive. `arguments` is JSON text, or already an object when nothing was streamed."""

    id: str = ""
    name: str = ""
    arguments: str | dict[str, Any] = ""
    position: Any = None


@dataclass(kw_only=True)
class Reply:
    """What arrived so far. Raw pieces are kept, because joining them cleverly would repair what was cut off."""

    text: str = ""
    calls: list[RawCall] = field(default_factory=list)
    finish: str = ""
    usage: Counter[str] = field(default_factory=Counter)
    size: int = 0  # characters that arrived
    given_up: bool = False  # it is cut off here, by us

    def add(self, chunk: AIMessage) -> str:
        """Take one chunk, or a whole message from a model that does not stream, and return its text."""
        piece = self._fitting(plain.text(str(chunk.text)))
        self.text += piece
        pieces = getattr(chunk, "tool_call_chunks", None)
        if pieces is None:
            self._add_whole(chunk)
        for part in pieces or ():
            self._add_piece(part)
        metadata = chunk.response_metadata
        self.finish = str(metadata.get("finish_reason") or metadata.get("stop_reason") or self.finish)
        usage: dict[str, Any] = dict(chunk.usage_metadata or {})
        self.usage.update({name: min(max(int(usage.get(name) or 0), 0), MOST_TOKENS) for name in TOKENS})
        self.given_up = self.given_up or self.size >= LONGEST or len(self.calls) > MOST_CALLS
        return piece

    def _add_whole(self, message: AIMessage) -> None:
        for call in message.tool_calls:
            self.calls.append(RawCall(id=call["id"] or "", name=call["name"], arguments=call["args"]))
        for bad in message.invalid_tool_calls:
            self.calls.append(RawCall(id=bad["id"] or "", name=bad["name"] or "", arguments=bad["args"] or ""))

    def _add_piece(self, part: Any) -> None:
        call = self._continued(part)
        if call is None:
            call = RawCall(position=part.get("index"))
            self.calls.append(call)
        call.id = call.id or part.get("id") or ""
        call.name = call.name or part.get("name") or ""
        call.arguments = str(call.arguments) + self._fitting(part.get("args") or "")

    def _fitting(self, piece: str) -> str:
        """Return as much of a piece as there is room for."""
        room = max(LONGEST - self.size, 0)
        self.size += len(piece)
        return piece[:room]

    def _continued(self, part: Any) -> RawCall | None:
        """Return the call that this piece belongs to; another id at the same position begins another call."""
        index, new = part.get("index"), part.get("id")
        if index is None or not self.calls:
            return None
        known = next((call for call in reversed(self.calls) if call.position == index), None)
        return None if known and new and known.id and new != known.id else known

    @property
    def was_cut(self) -> bool:
        """Return whether the model ran out of room, or of our patience: what follows is unknown, so no call may run."""
        return self.given_up or self.finish.lower() in CUT_SHORT

    def message(self, *, known_ids: Collection[str], model: str, prompt_version: str) -> AIMessage:
        """Return the answer as it enters the thread: fresh id, unique call ids, storable arguments, problems beside them."""
        message_id = f"ai:{uuid4()}"
        calls, problems = _sound(self, message_id=message_id, known_ids=known_ids)
        return AIMessage(
            id=message_id,
            content=self.text if calls or self.text.strip() else NOTHING_SAID,
            tool_calls=calls,
            additional_kwargs={"problems": problems} if problems else {},
            response_metadata={"model_name": model, "prompt_version": prompt_version, "finish_reason": self.finish},
            usage_metadata=UsageMetadata(**{name: self.usage[name] for name in TOKENS}),  # type: ignore[typeddict-item]
        )


def _sound(reply: Reply, *, message_id: str, known_ids: Collection[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the calls as they are remembered, and the problems by index: {"0": {"sentence", "raw"}}."""
    ids = Counter(call.id for call in reply.calls)
    repeated = {id_ for id_, count in ids.items() if count > 1 or not id_}
    # two calls under one id: nobody could say which answer was whose, so the step is refused as a whole
    of_all = TRUNCATED if reply.was_cut else BAD_ID if repeated else None
    calls, problems = [], {}
    for index, raw in enumerate(reply.calls[:MOST_CALLS]):
        arguments, sentence = _arguments(raw)
        named = NAME.fullmatch(raw.name)
        if of_all or not named or sentence:
            problem = of_all or (sentence if named else BAD_NAME)
            problems[str(index)] = {"sentence": problem, "raw": plain.text(str(raw.arguments))[:RAW_KEPT]}
        usable = ID.fullmatch(raw.id) and raw.id not in repeated and raw.id not in known_ids
        calls.append(
            {
                "id": raw.id if usable else f"call_{message_id[-12:]}_{index}",
                "name": raw.name if named else "unknown_tool",
                "args": arguments,
                "type": "tool_call",
            }
        )
    return calls, problems


def _arguments(raw: RawCall) -> tuple[dict[str, Any], str | None]:
    try:
        if isinstance(raw.arguments, dict):
            return plain.checked(raw.arguments), None
        return plain.parse_object(raw.arguments), None
    except plain.NotPlain as problem:
        return {}, str(problem)
