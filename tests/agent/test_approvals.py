"""What a decision allows: its own step of its own thread, in its own generation, as exactly what was shown."""

import uuid
from typing import Any

import pytest

from agent import approvals, questions
from agent.approvals import Permission
from tests.agent.scripts import says
from tests.agent.takeovers import HELD, PERIOD, step
from tests.agent.talks import Talk


@pytest.fixture
def asked(talk: Talk) -> Talk:
    """Return a talk with a held step."""
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(step(talk), says("never")) == "waiting"
    return talk


def given(talk: Talk, **changes: Any) -> Permission | None:
    """Return what the talk's decisions allow of its newest step, with some of that named otherwise."""
    message: Any = talk.messages()[-1]
    named = {
        "decisions": [row[0] for row in talk.rows("SELECT id FROM public.escalations_decision")],
        "thread": talk.thread,
        "ai_message_id": message.id,
        "generation": 0,
        "proposed": questions.calls_of(message),
    }
    with talk.pool.connection() as conn:
        return approvals.permission(conn, **named | changes)


def edit(talk: Talk, **how: Any) -> None:
    arguments = {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": 40_000, "currency": "EUR"}
    talk.revise({"index": 0, "arguments": arguments}, **how)
    assert talk.drive(says("never")) == "waiting"


def test_it_allows_what_was_shown(asked: Talk) -> None:
    asked.sign()
    found = given(asked)
    assert found
    assert [(item["rule"], item["call_index"], item["measured"]) for item in found.waived] == [("per_call", 0, 48_000)]
    assert (found.calls, found.changes, found.dropped, found.performed_by) == (None, {}, {}, None)
    assert found.by == ("Reviewer 8",)
    assert found.digest == asked.one("SELECT digest FROM public.escalations_preview")
    assert found.escalation == asked.one("SELECT id FROM public.escalations_escalation")


@pytest.mark.parametrize(
    "named",
    [{"thread": uuid.uuid4()}, {"ai_message_id": "ai:another"}, {"generation": 1}, {"decisions": []}, {"decisions": [999]}],
)
def test_it_allows_nothing_anywhere_else(asked: Talk, named: dict[str, Any]) -> None:
    asked.sign()
    assert given(asked, **named) is None


@pytest.mark.parametrize("kind", ["reject", "answer"])
def test_it_takes_no_other_decision_for_a_yes(asked: Talk, kind: str) -> None:
    asked.decide(kind, "No.")
    assert given(asked) is None


def test_it_allows_an_edit_as_the_next_generation_only(asked: Talk) -> None:
    edit(asked, text="The credit stays.")
    asked.sign()
    assert given(asked) is None
    found = given(asked, generation=1)
    assert found and found.calls
    assert [(call.index, call.arguments["amount_minor"]) for call in found.calls if call.arguments] == [(0, 40_000)]
    assert found.changes == {0: (("amount_minor", 48_000, 40_000),)}
    assert found.dropped == {1: "The credit stays."}


def test_it_names_who_took_a_step_over(asked: Talk) -> None:
    edit(asked, as_person=True)
    asked.sign()
    found = given(asked, generation=1)
    assert found and found.performed_by == asked.editor
