"""A model that follows a script: the reply is picked by the history, so a node that runs again gets the same one anywhere."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from agent.llm import Model

Call = tuple[str, dict[str, Any]]


def calls(*given: Call, text: str = "", ids: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
    """Return a reply that calls tools."""
    names = ids or [f"call-{index}" for index in range(len(given))]
    made = [{"name": name, "args": json.dumps(args), "id": names[index]} for index, (name, args) in enumerate(given)]
    return {"text": text, "calls": made} | more


def raw(arguments: str, *, name: str = "LookUpCustomer", **more: Any) -> dict[str, Any]:
    """Return a reply whose one call has these characters as arguments."""
    return {"text": "", "calls": [{"name": name, "args": arguments, "id": "call-0"}]} | more


def says(text: str) -> dict[str, Any]:
    """Return a reply in words."""
    return {"text": text, "calls": []}


class Scripted(BaseChatModel):
    """`script[n]` answers a history with n messages of the model: a reply, an exception, or a function of the messages."""

    script: list[Any]
    piece: int = 7
    prompts: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools), **kwargs)

    def _reply(self, messages: list[BaseMessage]) -> dict[str, Any]:
        self.prompts.append(list(messages))
        turn = sum(isinstance(m, AIMessage) and str(m.id).startswith("ai:") for m in messages)
        step = self.script[min(turn, len(self.script) - 1)]
        if isinstance(step, Callable) and not isinstance(step, type | BaseException):  # type: ignore[arg-type]
            step = step(messages)
        if isinstance(step, BaseException):
            raise step
        return dict(step)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("streamed only")

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages)
        for start in range(0, len(reply["text"]), self.piece):
            yield self._chunk(content=reply["text"][start : start + self.piece])
            if pause := reply.get("pause"):
                pause()
        for index, call in enumerate(reply["calls"]):
            for start in range(0, max(len(call["args"]), 1), self.piece):
                part = {"name": None, "id": None} if start else {"name": call["name"], "id": call["id"]}
                arguments = call["args"][start : start + self.piece]
                yield self._chunk(content="", tool_call_chunks=[part | {"args": arguments, "index": call.get("index", index)}])
        finish = reply.get("finish") or ("tool_calls" if reply["calls"] else "stop")
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": reply.get("tokens", 15)}
        yield self._chunk(content="", response_metadata={"finish_reason": finish}, usage_metadata=usage)

    def _chunk(self, **values: Any) -> ChatGenerationChunk:
        return ChatGenerationChunk(message=AIMessageChunk(**values))


class Whole(BaseChatModel):
    """A model that does not stream and answers with one message."""

    reply: Any

    @property
    def _llm_type(self) -> str:
        return "whole"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools), **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply)])


def model(*script: Any) -> Model:
    """Return a model that follows the script."""
    return Model(Scripted(script=list(script)), "scripted")
