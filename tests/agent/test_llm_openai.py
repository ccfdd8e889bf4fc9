"""A server that speaks OpenAI's protocol: the one most self-hosted models offer."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent import llm
from tests.agent.talks import Talk

Requests = list[dict[str, Any]]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """Return one event of a streamed completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}


def use(name: str, *pieces: str) -> list[dict[str, Any]]:
    """Return a tool call whose arguments come in pieces."""
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    parts = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    return [chunk(role="assistant", tool_calls=[first]), *(chunk(tool_calls=[part]) for part in parts), chunk("tool_calls")]


@pytest.fixture
def answers() -> list[list[dict[str, Any]]]:
    """Return the answers that the server gives, one a request; the test fills it."""
    return []


@pytest.fixture
def asked(answers: list[list[dict[str, Any]]], settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    """Return what a running server was asked; the settings name it."""
    found: Requests = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            found.append({"path": self.path} | json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in answers.pop(0):
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.BACKSTOP_MODEL = "openai:test"
    settings.BACKSTOP_MODEL_BASE_URL = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    llm.installed.cache_clear()
    yield found
    llm.installed.cache_clear()
    server.shutdown()
    server.server_close()


def test_it_runs_a_call_and_tells_the_answer(talk: Talk, asked: Requests, answers: list[list[dict[str, Any]]]) -> None:
    answers += [use("LookUpCustomer", '{"customer', f'_id": {talk.customer}', "}"), [chunk(content="Seen."), chunk("stop")]]
    talk.say("Look")
    assert talk.drive(model=llm.installed()) == "idle"
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "ai"]
    assert talk.transcript()[-1] == ("ai", "Seen.")
    assert asked[0]["path"] == "/v1/chat/completions"
    told = asked[1]["messages"][-1]
    assert (told["role"], told["tool_call_id"]) == ("tool", "call_1")


def test_it_runs_nothing_that_was_cut_off(talk: Talk, asked: Requests, answers: list[list[dict[str, Any]]]) -> None:
    cut = [*use("LookUpCustomer", '{"customer_id": 1')[:-1], chunk("length")]
    answers += [cut, [chunk(content="Sorry."), chunk("stop")]]
    talk.say("Look")
    assert talk.drive(model=llm.installed()) == "idle"
    assert talk.transcript()[2][1].startswith("FAILED: ")
    assert len(asked[1]["messages"]) == 4  # system, human, the call and its answer: nothing is left unanswered
