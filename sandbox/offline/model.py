"""The offline model as LangChain sees it: bound tools, pieces of text and of tool calls, usage, a reason for the end."""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from sandbox.offline import decisions, history
from sandbox.offline.decisions import Reply

NAME = "offline"
PAUSE_MS = 8  # between pieces: BACKSTOP_OFFLINE_TOKEN_MS
SLOW_MS = 250
MOST_PIECES = 60  # of text, so that an answer takes half a second at the usual pause
CALL_PIECES = 4  # of one call's arguments


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One call as it is sent."""

    id: str
    name: str
    arguments: str  # JSON, unless it was cut off


class OfflineModel(BaseChatModel):
    """A deterministic planner: the same history gets the same answer, in any process. It has no parameters."""

    @property
    def _llm_type(self) -> str:
        return NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": NAME}

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with these tools; without them it can only talk."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        told = history.read(messages)
        reply = decisions.decide(told, tools=_names(kwargs))
        good, bad = [], []
        for sent in _calls(reply, digest=told.digest):
            try:
                good.append(tool_call(name=sent.name, args=json.loads(sent.arguments), id=sent.id))
            except ValueError:
                bad.append(invalid_tool_call(name=sent.name, args=sent.arguments, id=sent.id, error="not valid JSON"))
        message = AIMessage(
            content=reply.text,
            tool_calls=good,
            invalid_tool_calls=bad,
            usage_metadata=_usage(messages, reply),
            response_metadata=_ending(reply),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        told = history.read(messages)
        reply = decisions.decide(told, tools=_names(kwargs))
        pause = SLOW_MS if "slow" in told.request.flaws else _pause()
        for index, message in enumerate(_pieces(reply, messages, digest=told.digest)):
            if index:
                time.sleep(pause / 1000)
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(str(message.text), chunk=chunk)
            yield chunk


def _pause() -> float:
    """Return the pause between pieces in milliseconds."""
    try:
        return max(float(os.environ.get("BACKSTOP_OFFLINE_TOKEN_MS", PAUSE_MS)), 0)
    except ValueError:
        return PAUSE_MS


def _names(options: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in options.get("tools") or []]


def _calls(reply: Reply, *, digest: str) -> list[Sent]:
    """Return the calls with ids that follow from the history and the position alone."""
    sent = []
    for index, call in enumerate(reply.step.calls):
        position = max(index - 1, 0) if reply.step.same_id else index
        number = hashlib.sha256(f"{digest}:{position}".encode()).hexdigest()[:24]
        arguments = reply.step.raw.get(index) or json.dumps(call.arguments, ensure_ascii=False)
        sent.append(Sent(id=f"call_{number}", name=call.tool, arguments=arguments))
    return sent


def _pieces(reply: Reply, messages: Sequence[BaseMessage], *, digest: str) -> Iterator[AIMessageChunk]:
    words = reply.text.split(" ") if reply.text else []
    step = max(1, -(-len(words) // MOST_PIECES))
    for start in range(0, len(words), step):
        text = " ".join(words[start : start + step])
        yield AIMessageChunk(content=text if start + step >= len(words) else f"{text} ")
    for index, sent in enumerate(_calls(reply, digest=digest)):
        for number, piece in enumerate(_cut(sent.arguments)):
            first = {"name": sent.name, "id": sent.id} if number == 0 else {"name": None, "id": None}
            yield AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=piece, index=index, **first)])
    yield AIMessageChunk(
        content="", usage_metadata=_usage(messages, reply), response_metadata=_ending(reply), chunk_position="last"
    )


def _cut(text: str) -> list[str]:
    size = max(1, -(-len(text) // CALL_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    """Return a rough count: a token is about four characters."""
    told = sum(len(str(message.text)) for message in messages) // 4 + 1
    said = (len(reply.text) + sum(len(str(call.arguments)) for call in reply.step.calls)) // 4 + 1
    return UsageMetadata(input_tokens=told, output_tokens=said, total_tokens=told + said)


def _ending(reply: Reply) -> dict[str, Any]:
    finish = "length" if reply.step.cut_off else "tool_calls" if reply.step.calls else "stop"
    return {"model_name": NAME, "finish_reason": finish}
