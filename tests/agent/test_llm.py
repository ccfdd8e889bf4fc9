"""A real provider's client against a server of ours that speaks its protocol: what arrives, what is sent, what goes wrong."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agent import llm
from agent.llm import Unavailable, Unusable
from agent.replies import TRUNCATED
from agent.tools import registry
from tests.agent.talks import Talk

Reply = list[tuple[str, dict[str, Any]]]


@dataclass
class Provider:
    """Answers each request with the next reply: a list of events, or a status that is not 200."""

    replies: list[Any] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)


def events(*blocks: dict[str, Any], stop: str = "end_turn") -> Reply:
    """Return the events of one streamed message."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [], "stop_reason": None}
    used = {"input_tokens": 11, "output_tokens": 7}
    sent: Reply = [("message_start", {"message": start | {"usage": {"input_tokens": 11, "output_tokens": 1}}})]
    for index, block in enumerate(blocks):
        pieces = block.pop("pieces")
        sent.append(("content_block_start", {"index": index, "content_block": block}))
        kind, key = ("text_delta", "text") if block["type"] == "text" else ("input_json_delta", "partial_json")
        sent += [("content_block_delta", {"index": index, "delta": {"type": kind, key: piece}}) for piece in pieces]
        sent.append(("content_block_stop", {"index": index}))
    sent.append(("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": used}))
    return [*sent, ("message_stop", {})]


def text(*pieces: str) -> dict[str, Any]:
    return {"type": "text", "text": "", "pieces": pieces}


def use(name: str, *pieces: str, id_: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {}, "pieces": pieces}


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Return a running provider that the settings name."""
    found = Provider()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            found.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            reply = found.replies.pop(0)
            self.send_response(reply if isinstance(reply, int) else 200)
            self.send_header("content-type", "application/json" if isinstance(reply, int) else "text/event-stream")
            self.end_headers()
            if isinstance(reply, int):
                self.wfile.write(b'{"type": "error", "error": {"type": "api_error", "message": "secret words"}}')
                return
            for name, data in reply:
                self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n".encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.BACKSTOP_MODEL = "anthropic:claude-test"
    settings.BACKSTOP_MODEL_BASE_URL = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    llm.installed.cache_clear()
    yield found
    llm.installed.cache_clear()
    server.shutdown()
    server.server_close()


def test_it_streams_text_and_counts_tokens(talk: Talk, provider: Provider) -> None:
    provider.replies = [events(text("Good ", "morning."))]
    talk.say("Hello")
    assert talk.drive(model=llm.installed()) == "idle"
    assert talk.transcript()[-1] == ("ai", "Good morning.")
    usage, model = talk.one("SELECT usage, model FROM public.agent_transcript_entry WHERE role = 'ai'")
    assert (usage["input_tokens"], usage["output_tokens"], model) == (11, 7, "anthropic:claude-test")


def test_it_runs_a_call_whose_arguments_came_in_pieces(talk: Talk, provider: Provider) -> None:
    pieces = ('{"customer', f'_id": {talk.customer}', "}")
    provider.replies = [events(text("Let me look."), use("LookUpCustomer", *pieces), stop="tool_use"), events(text("Seen."))]
    talk.say("Look")
    assert talk.drive(model=llm.installed()) == "idle"
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "ai"]
    told = provider.requests[1]["messages"]
    assert [block["type"] for block in told[1]["content"]] == ["text", "tool_use"]
    assert told[2]["content"][0]["tool_use_id"] == told[1]["content"][1]["id"] == "toolu_1"


def test_it_tells_the_provider_about_every_tool(talk: Talk, provider: Provider) -> None:
    provider.replies = [events(text("Hello."))]
    talk.say("Hello")
    talk.drive(model=llm.installed())
    sent = {tool["name"]: tool for tool in provider.requests[0]["tools"]}
    assert set(sent) == set(registry())
    assert sent["CreateInvoice"]["input_schema"]["additionalProperties"] is False
    assert sent["CreateInvoice"]["description"]


@pytest.mark.parametrize("stop", ["max_tokens", "tool_use"])
def test_it_runs_nothing_that_was_cut_off(talk: Talk, provider: Provider, stop: str) -> None:
    cut = events(use("LookUpCustomer", '{"customer_id": 1'), stop=stop)
    provider.replies = [cut, events(text("Sorry."))]
    talk.say("Look")
    assert talk.drive(model=llm.installed()) == "idle"
    why = TRUNCATED if stop == "max_tokens" else "The arguments are not complete, valid JSON."
    assert talk.transcript()[2] == ("tool", f"FAILED: {why}")
    told = provider.requests[1]["messages"]
    assert told[1]["content"][0]["input"] == {}
    assert told[2]["content"][0]["is_error"] is True


@pytest.mark.parametrize(
    ("status", "kind"), [(429, Unavailable), (500, Unavailable), (529, Unavailable), (400, Unusable), (401, Unusable)]
)
def test_it_asks_once_and_says_what_a_status_means(provider: Provider, status: int, kind: type[Exception]) -> None:
    provider.replies = [status, status, status]
    with pytest.raises(kind, match=f"^the provider answered {status}$"):
        list(llm.stream(llm.installed(), [HumanMessage("Hello")], tools={}))
    assert len(provider.requests) == 1


def test_it_tries_again_after_an_overload(talk: Talk, provider: Provider) -> None:
    provider.replies = [529, 429, events(text("At last."))]
    talk.say("Hello")
    assert talk.drive(model=llm.installed()) == "idle"
    assert talk.transcript()[-1] == ("ai", "At last.")


def test_it_knows_that_nobody_listens(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.BACKSTOP_MODEL, settings.BACKSTOP_MODEL_BASE_URL = "anthropic:claude-test", "http://127.0.0.1:1"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    llm.installed.cache_clear()
    with pytest.raises(Unavailable):
        list(llm.stream(llm.installed(), [HumanMessage("Hello")], tools={}))
    llm.installed.cache_clear()


def test_it_uses_the_stand_in_without_a_model(settings: Any) -> None:
    settings.BACKSTOP_MODEL = ""
    llm.installed.cache_clear()
    assert llm.installed().name == "offline"
