"""The offline model as a chat model: pieces, ids, usage, and the same answer to the same history."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage

from agent import llm, replies
from agent.tools import registry
from sandbox.offline.model import OfflineModel
from tests.sandbox.offline_talks import PROMPT

REQUEST = "Bill November at €480, apply €150 of credit, then charge the remainder to the card"
MESSAGES = [SystemMessage(PROMPT.format(customer=42, currency="EUR", today="2026-11-30")), HumanMessage(REQUEST)]


def bound() -> Any:
    return OfflineModel().bind_tools(llm.schemas(registry()))


def streamed(text: str = REQUEST) -> list[AIMessageChunk]:
    return list(bound().stream([MESSAGES[0], HumanMessage(text)]))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces follow each other without a pause."""
    monkeypatch.setenv("BACKSTOP_OFFLINE_TOKEN_MS", "0")


def test_it_streams_what_it_says_when_asked_at_once(at_once: None) -> None:
    whole, chunks = bound().invoke(MESSAGES), streamed()
    joined = chunks[0]
    for chunk in chunks[1:]:
        joined += chunk
    assert joined.text == whole.text
    assert joined.tool_calls == whole.tool_calls
    assert joined.usage_metadata == whole.usage_metadata
    assert joined.response_metadata["finish_reason"] == "tool_calls"


def test_it_streams_words_and_calls_in_pieces(at_once: None) -> None:
    chunks = streamed()
    assert sum(bool(chunk.text) for chunk in chunks) > 10
    pieces = [piece for chunk in chunks for piece in chunk.tool_call_chunks]
    assert len(pieces) > 6
    assert [piece["index"] for piece in pieces] == sorted(piece["index"] or 0 for piece in pieces)


def test_it_is_read_by_the_agent_as_it_was_sent(at_once: None) -> None:
    reply = replies.Reply()
    for chunk in streamed():
        reply.add(chunk)
    message = reply.message(known_ids=(), model="offline", prompt_version="1")
    assert [call["name"] for call in message.tool_calls] == ["CreateInvoice", "ApplyCredit", "QueueCharge"]
    assert "problems" not in message.additional_kwargs


@pytest.mark.parametrize("flaw", ["truncated", "same id"])
def test_it_is_refused_by_the_agent_when_it_is_told_to_misbehave(flaw: str, at_once: None) -> None:
    reply = replies.Reply()
    for chunk in streamed(f"{REQUEST} [misbehave: {flaw}]"):
        reply.add(chunk)
    message = reply.message(known_ids=(), model="offline", prompt_version="1")
    assert len(message.additional_kwargs["problems"]) == 3


def test_it_answers_the_same_history_in_the_same_way_in_fresh_objects() -> None:
    first, second = bound().invoke(MESSAGES), bound().invoke(MESSAGES)
    assert first is not second
    assert first.tool_calls == second.tool_calls
    assert len({call["id"] for call in first.tool_calls}) == 3


def test_it_answers_the_same_in_another_process() -> None:
    code = (
        "import json, sys; from langchain_core.messages import *; from sandbox.offline.model import OfflineModel;"
        " told = json.load(sys.stdin); model = OfflineModel().bind_tools(told['tools']);"
        " print(json.dumps(model.invoke([SystemMessage(told['system']), HumanMessage(told['human'])]).tool_calls))"
    )
    told = {"tools": llm.schemas(registry()), "system": MESSAGES[0].text, "human": REQUEST}
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(told), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == bound().invoke(MESSAGES).tool_calls


def test_it_gives_other_ids_in_another_turn() -> None:
    first = bound().invoke(MESSAGES)
    later = bound().invoke([*MESSAGES, HumanMessage(REQUEST)])
    assert not {call["id"] for call in first.tool_calls} & {call["id"] for call in later.tool_calls}


def test_it_calls_no_tool_that_it_was_not_offered() -> None:
    alone = OfflineModel().invoke(MESSAGES)
    assert not alone.tool_calls
    assert "I have no tool" in alone.text


def test_it_starts_at_once_and_takes_less_than_700_ms() -> None:
    began = time.perf_counter()
    stream = bound().stream([MESSAGES[0], HumanMessage("What can you do for us?")])
    next(stream)
    first = time.perf_counter() - began
    list(stream)
    assert first < 0.1
    assert time.perf_counter() - began < 0.7


def test_it_says_what_it_is() -> None:
    reply = bound().invoke([MESSAGES[0], HumanMessage("Who are you?")])
    assert reply.response_metadata == {"model_name": "offline", "finish_reason": "stop"}
    assert "stand-in" in reply.text
    assert reply.usage_metadata["total_tokens"] > 20
