"""Answers of the model: whatever arrives, the thread stays readable, every call is answered, and nothing unsound runs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from agent import plain
from agent.budgets import Limits
from agent.llm import Model
from agent.replies import BAD_ID, BAD_NAME, LONGEST, MOST_CALLS, TRUNCATED, Reply
from tests.agent.scripts import Scripted, Whole, calls, raw, says
from tests.agent.talks import Talk

POISON = [
    '{"customer_id": 1',  # cut off: a streaming parser would repair it
    '{"customer_id": 1}{"customer_id": 2}',
    '{"customer_id": 1, "customer_id": 2}',
    '{"customer_id": NaN}',
    '{"customer_id": 1e999}',
    '{"customer_id": -Infinity}',
    '{"customer_id": 123456789012345678901234567890}',
    '{"customer_id": ' + "9" * 5000 + "}",
    '{"customer_id": "\\u0000"}',
    '{"customer_id": "\\ud800"}',
    '{"\\ud800": 1}',
    "[1]",
    '"text"',
    "null",
    "0",
    "",
    "[" * 995,
    '{"a":' * 30 + "1" + "}" * 30,
    "\x00",
]


@pytest.mark.parametrize("arguments", POISON)
def test_it_runs_nothing_and_goes_on_after_poisonous_arguments(talk: Talk, arguments: str) -> None:
    talk.say("Hello")
    assert talk.drive(raw(arguments), says("Sorry.")) == "idle"
    roles = [role for role, _ in talk.texts()]
    assert roles == ["human", "ai", "tool", "ai"]
    assert talk.texts()[2][1].startswith("FAILED: The arguments")
    assert talk.one("SELECT outcome FROM public.ledger_attempt_outcome") == "refused"


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_it_runs_nothing_of_an_answer_that_was_cut_off(talk: Talk, finish: str) -> None:
    call = "LookUpCustomer", {"customer_id": talk.customer}
    talk.say("Hello")
    assert talk.drive(calls(call, call, finish=finish), says("Again.")) == "idle"
    assert [text for role, text in talk.texts() if role == "tool"] == [f"FAILED: {TRUNCATED}"] * 2


@pytest.mark.parametrize("ids", [["", ""], ["a", "a"], ["a", ""]])
def test_it_refuses_a_step_whose_call_ids_are_empty_or_repeated(talk: Talk, ids: list[str]) -> None:
    call = "LookUpCustomer", {"customer_id": talk.customer}
    talk.say("Hello")
    assert talk.drive(calls(call, call, ids=ids), says("Again.")) == "idle"
    assert [text for role, text in talk.texts() if role == "tool"] == [f"FAILED: {BAD_ID}"] * 2
    step = talk.messages()[1]
    assert isinstance(step, AIMessage)
    assert len({call["id"] for call in step.tool_calls}) == 2


def test_it_gives_a_call_a_fresh_id_when_an_earlier_step_used_it(talk: Talk) -> None:
    call = "LookUpCustomer", {"customer_id": talk.customer}
    talk.say("Hello")
    assert talk.drive(calls(call), calls(call), says("Seen.")) == "idle"
    steps = [m for m in talk.messages() if isinstance(m, AIMessage) and m.tool_calls]
    assert len({step.tool_calls[0]["id"] for step in steps}) == 2
    assert all(m.status == "success" for m in talk.messages() if m.type == "tool")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "no such tool", "x" * 65, "ünïcode", "DropTable"])
def test_it_answers_calls_of_tools_that_do_not_exist(talk: Talk, name: str) -> None:
    talk.say("Hello")
    assert talk.drive(calls((name, {"customer_id": talk.customer})), says("Sorry.")) == "idle"
    assert talk.texts()[2][1].startswith("FAILED: There is no tool of this name.")


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\U000e0000", "<script>"])
def test_it_remembers_any_text(talk: Talk, text: str) -> None:
    talk.say("Hello")
    assert talk.drive(says(f"Said {text}.")) == "idle"
    talk.say("And?")
    assert talk.drive(says(""), says("Fine.")) == "idle"
    assert talk.transcript()[1] == ("ai", f"Said {plain.text(text)}.")


def test_it_keeps_what_could_not_be_read_for_people(talk: Talk) -> None:
    talk.say("Hello")
    talk.drive(raw('{"customer_id": 1'), says("Sorry."))
    [call] = talk.one("SELECT tool_calls FROM public.agent_transcript_entry WHERE position = 1")
    assert call["problem"]["raw"] == '{"customer_id": 1'


def test_it_takes_the_whole_message_of_a_model_that_does_not_stream(talk: Talk) -> None:
    whole = AIMessage(
        content="",
        tool_calls=[{"name": "LookUpCustomer", "args": {"customer_id": talk.customer}, "id": "a"}],
        invalid_tool_calls=[{"name": "LookUpCustomer", "args": "{", "id": "b", "error": None}],
    )
    talk.say("Hello")
    talk.drive(model=Model(Whole(reply=whole), "whole"), limits=Limits(model_calls=1))
    assert [text.partition(":")[0] for role, text in talk.texts() if role == "tool"] == ["NOT APPLIED", "FAILED"]


def chunk(**part: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[{"name": None, "args": "", "id": None, "index": 0} | part])


def test_it_tells_calls_apart_that_share_a_position() -> None:
    reply = Reply()
    for part in ({"id": "a", "name": "A", "args": "{}"}, {"id": "b", "name": "B", "args": '{"x":'}, {"args": "1}"}):
        reply.add(chunk(**part))
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [("a", "A", "{}"), ("b", "B", '{"x":1}')]


def test_it_counts_the_usage_of_all_chunks() -> None:
    reply = Reply()
    reply.add(AIMessageChunk(content="a", usage_metadata={"input_tokens": 7, "output_tokens": 0, "total_tokens": 7}))
    reply.add(AIMessageChunk(content="b", usage_metadata={"input_tokens": 0, "output_tokens": 2, "total_tokens": 2}))
    assert reply.message(known_ids=(), model="m", prompt_version="1").usage_metadata == {
        "input_tokens": 7, "output_tokens": 2, "total_tokens": 9,
    }  # fmt: skip


def test_it_never_gives_two_answers_the_same_id() -> None:
    made = [Reply(text="same").message(known_ids=(), model="m", prompt_version="1").id for _ in range(2)]
    assert len(set(made)) == 2


def test_it_says_why_a_name_cannot_be_used() -> None:
    reply = Reply()
    reply.add(chunk(id="a", name="no such tool", args="{}"))
    message = reply.message(known_ids=(), model="m", prompt_version="1")
    assert message.additional_kwargs["problems"]["0"]["sentence"] == BAD_NAME
    assert message.tool_calls[0]["name"] == "unknown_tool"


@pytest.mark.parametrize("good", ["{}", '{"a": [1, 2.5, null, true, "ü", {"b": -1}]}', '{"a": 9223372036854775807}'])
def test_it_reads_plain_objects_as_they_are(good: str) -> None:
    assert plain.parse_object(good) == json.loads(good)


@pytest.mark.parametrize("tokens", [10**25, -(10**25)])
def test_it_believes_no_impossible_count_of_tokens(talk: Talk, tokens: int) -> None:
    talk.say("Hello")
    assert talk.drive(says("Good morning.") | {"tokens": tokens}) == "idle"
    talk.say("And?")
    assert talk.drive(says(""), says("Fine.")) == "idle"


class Endless(Scripted):
    """A model that begins an answer and never ends it."""

    call: bool

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for number in range(100_000):  # an end for the test's sake
            part = {"index": number, "id": f"c{number}", "name": "LookUpCustomer", "args": "{}"}
            yield self._chunk(content="" if self.call else "and so on ", tool_call_chunks=[part] if self.call else [])


@pytest.mark.parametrize(("call", "kind"), [(False, "budget"), (True, "rollbacks")])
def test_it_ends_an_answer_that_does_not_end(talk: Talk, call: bool, kind: str) -> None:
    talk.say("Hello")
    assert talk.drive(model=Model(Endless(script=[], call=call), "endless")) == "waiting"
    assert [row[0] for row in talk.escalations()] == [kind]
    steps = [message for message in talk.messages() if isinstance(message, AIMessage)]
    assert all(len(str(step.text)) <= LONGEST and len(step.tool_calls) <= MOST_CALLS for step in steps)
    assert not talk.rows("SELECT 1 FROM public.ledger_execution")


def test_it_ends_an_answer_that_takes_longer_than_the_turn_may(talk: Talk) -> None:
    talk.say("Hello")
    limits = Limits(seconds=0.2)
    assert talk.drive(model=Model(Endless(script=[], call=False), "endless"), limits=limits) == "waiting"
    text = talk.one("SELECT text FROM public.agent_transcript_entry WHERE role = 'ai'")
    assert len(text) < LONGEST
