"""Mistakes on demand: each is made once, and the step after the refusal is right."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from sandbox.offline.misbehaviour import FLAWS
from tests.sandbox.offline_talks import Talk, sent

REQUEST = "Bill November at €480, apply €150 of credit, then charge the remainder to the card"
REFUSALS = {
    "stray quote": (2, "Invalid argument customer_id: Input should be a valid integer."),
    "wrong customer": (2, "Customer 43 does not exist in this conversation; it is about customer 42."),
    "negative amount": (2, "Invalid argument amount_minor: Input should be greater than or equal to 0."),
    "bad date": (0, "Invalid argument billing_period: write the first day of the month as YYYY-MM-DD, such as 2026-11-01."),
    "unknown tool": (2, "There is no tool of this name. The tools are: LookUpCustomer."),
    "truncated": (2, "The answer was cut off before its end. Send a shorter step, complete."),
    "same id": (2, "The call's id was empty or used twice in this step. Send the step again."),
}


def misbehaving(flaw: str) -> tuple[Talk, AIMessage]:
    talk = Talk()
    return talk, talk.say(f"{REQUEST} [misbehave: {flaw}]")


def with_own_ids(reply: AIMessage) -> None:
    """Give each call an id of its own, as the agent does before the message enters the thread."""
    for index, call in enumerate(reply.tool_calls):
        call["id"] = f"fresh-{index}"


@pytest.mark.parametrize("flaw", REFUSALS)
def test_it_makes_the_mistake_once_and_sends_the_whole_step_again(flaw: str) -> None:
    right = Talk().say(REQUEST)
    talk, reply = misbehaving(flaw)
    assert sent(reply, without=()) != sent(right, without=()) or len({call["id"] for call in reply.tool_calls}) < 3
    if flaw == "same id":
        with_own_ids(reply)
    assert sent(talk.fail(*REFUSALS[flaw]), without=()) == sent(right, without=())


@pytest.mark.parametrize(
    ("flaw", "index", "wrong"),
    [
        ("stray quote", 2, {"customer_id": "42'"}),
        ("wrong customer", 2, {"customer_id": 43}),
        ("negative amount", 2, {"amount_minor": -33000}),
        ("bad date", 0, {"billing_period": "30/11/2026"}),
    ],
)
def test_it_gets_exactly_one_argument_wrong(flaw: str, index: int, wrong: dict[str, Any]) -> None:
    _, reply = misbehaving(flaw)
    right = Talk().say(REQUEST)
    assert reply.tool_calls[index]["args"] == right.tool_calls[index]["args"] | wrong


def test_it_cuts_its_json_off() -> None:
    _, reply = misbehaving("truncated")
    assert reply.response_metadata["finish_reason"] == "length"
    assert [call["name"] for call in reply.invalid_tool_calls] == ["QueueCharge"]


def test_it_gives_two_calls_one_id() -> None:
    _, reply = misbehaving("same id")
    assert reply.tool_calls[0]["id"] == reply.tool_calls[1]["id"] != reply.tool_calls[2]["id"]


def test_it_repeats_the_same_failing_step_for_ever() -> None:
    talk, reply = misbehaving("loop")
    for _ in range(5):
        again = talk.fail(2, "There is no invoice for January 2001.")
        assert sent(again, without=()) == sent(reply, without=())
    assert sent(talk.reviewer("Go ahead"), without=()) == sent(reply, without=())


def test_it_is_stubborn_three_times_and_then_follows_the_reviewer() -> None:
    talk, reply = misbehaving("stubborn")
    tried = [sent(reply)[1][1]["amount_minor"]]
    for wrong in ("€150.00", "€132.50"):
        reply = talk.fail(1, f"The credit balance is €120.00 (12000 minor units), so {wrong} cannot be used.")
        tried.append(sent(reply)[1][1]["amount_minor"])
    assert tried == [15000, 13250, 12001]
    talk.fail(1, "The credit balance is €120.00 (12000 minor units), so €120.01 cannot be used.")
    talk.messages.pop()
    answered = talk.reviewer("The credit balance is €120.00. Use exactly that, and charge €360.00.")
    assert [arguments["amount_minor"] for _, arguments in sent(answered)] == [48000, 12000, 36000]


def test_it_is_stubborn_about_a_charge_that_cannot_be_right() -> None:
    talk = Talk()
    reply = talk.say("Invoice December for €60 and charge it [misbehave: stubborn]")
    charged = [sent(reply)[1][1]["amount_minor"]]
    for _ in range(2):
        reply = talk.fail(
            1, f"Invoice 43 has €60.00 (6000 minor units) due, so a charge of €{charged[-1] / 100:.2f} is not possible."
        )
        charged.append(sent(reply)[1][1]["amount_minor"])
    assert charged == [6300, 6200, 6100]


def test_it_never_moves_a_wrong_amount_that_might_be_accepted() -> None:
    reply = Talk().say("Refund €25 for October [misbehave: stubborn]")
    assert sent(reply)[0][1]["amount_minor"] > 1_000_000  # above what any tool takes


@pytest.mark.parametrize("flaw", FLAWS)
def test_it_does_not_misbehave_when_it_only_reads_or_talks(flaw: str) -> None:
    assert not Talk().say(f"Hello there [misbehave: {flaw}]").tool_calls
    assert "€120.00" in Talk().say(f"How much credit is left? [misbehave: {flaw}]").text


def test_it_ignores_a_mistake_that_it_does_not_know() -> None:
    assert sent(Talk().say(f"{REQUEST} [misbehave: explode]")) == sent(Talk().say(REQUEST))
