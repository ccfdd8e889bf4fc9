"""How the offline model follows a reviewer's answer."""

from typing import Any

import pytest

from tests.sandbox.offline_sentences import NOV, OCT
from tests.sandbox.offline_talks import Talk, sent

REQUEST = "Bill November at €480, apply €150 of credit, then charge the remainder to the card"


def escalated() -> Talk:
    """Return a conversation whose step failed, so that a person was asked."""
    talk = Talk()
    talk.say(REQUEST)
    talk.fail(1, "The credit balance is €120.00 (12000 minor units), so €150.00 cannot be used.")
    talk.messages.pop()
    return talk


def step(*, credit: int | None, charge: int) -> list[tuple[str, dict[str, Any]]]:
    used = [("ApplyCredit", NOV | {"amount_minor": credit})] if credit is not None else []
    return [("CreateInvoice", NOV | {"amount_minor": 48000}), *used, ("QueueCharge", NOV | {"amount_minor": charge})]


@pytest.mark.parametrize(
    ("answer", "credit", "charge"),
    [
        ("The credit balance is €110.00. Use exactly that, and charge €370.00.", 11000, 37000),
        ("Use €100 of credit and charge the rest.", 10000, 38000),
        ("The balance is €90.", 9000, 39000),
        ("Take €95 of credit instead", 9500, 38500),
        ("€60", 6000, 42000),
        ("Use no credit.", None, 48000),
        ("Charge them the whole amount without credit", None, 48000),
        ("Go ahead.", 15000, 33000),
        ("Please try again", 15000, 33000),
    ],
)
def test_it_lets_the_amounts_of_the_answer_win(answer: str, credit: int | None, charge: int) -> None:
    assert sent(escalated().reviewer(answer)) == step(credit=credit, charge=charge)


def test_it_takes_the_month_of_the_answer() -> None:
    reply = escalated().reviewer("It should be December.")
    assert {arguments["billing_period"] for _, arguments in sent(reply)} == {"2026-12-01"}


@pytest.mark.parametrize("answer", ["No, leave it.", "Don't do this.", "Reject it, they left us."])
def test_it_does_nothing_after_a_no(answer: str) -> None:
    reply = escalated().reviewer(answer)
    assert not reply.tool_calls
    assert answer in reply.text


@pytest.mark.parametrize("answer", ["Ask them again next week", "Interesting case", "Their contract says something else"])
def test_it_does_nothing_for_an_answer_that_it_does_not_understand(answer: str) -> None:
    reply = escalated().reviewer(answer)
    assert not reply.tool_calls
    assert "Tell me what I should do now." in reply.text


def test_it_does_what_an_answer_asks_for_instead() -> None:
    assert sent(escalated().reviewer("Refund €10 for October")) == [("QueueRefund", OCT | {"amount_minor": 1000})]


def test_it_asks_a_person_alone_and_follows_the_answer() -> None:
    talk = Talk()
    asked = talk.say("Could you ask a reviewer whether €500 back is acceptable?")
    assert sent(asked) == [("AskHuman", {"question": "Whether €500 back is acceptable?"})]
    talk.apply({"status": "asked"})
    assert sent(talk.reviewer("Yes. Refund €500 for October.")) == [("QueueRefund", OCT | {"amount_minor": 50000})]


def test_it_corrects_after_an_answer_too() -> None:
    talk = escalated()
    talk.reviewer("Use €130 of credit")
    reply = talk.fail(1, "The credit balance is €120.00 (12000 minor units), so €130.00 cannot be used.")
    assert sent(reply) == step(credit=12000, charge=36000)
