"""A person who answers instead of the agent: who is silent, who is heard, and what the agent knows of it afterwards."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from agent import heartbeats, stepping_in
from agent.messages import MessageConflict
from agent.stepping_in import Elsewhere
from tests.agent import crashing, scripts
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk

Connection = psycopg.Connection[Any]
NAMES = {7: "Support 7", 8: "Reviewer 8", 9: "Reviewer 9"}


def step_in(talk: Talk, user: int = 7, *, instead_of: int | None = None, conn: Connection | None = None) -> None:
    stepping_in.step_in(conn or talk.web, thread=talk.thread, user=user, name=NAMES[user], instead_of=instead_of)


def hand_back(talk: Talk, user: int = 7, **more: Any) -> None:
    stepping_in.hand_back(talk.web, thread=talk.thread, user=user, name=NAMES[user], **more)


def say(talk: Talk, text: str, user: int = 7, message: uuid.UUID | None = None) -> bool:
    return stepping_in.say(talk.web, thread=talk.thread, message=message or uuid.uuid4(), user=user, text=text)


def person(talk: Talk) -> Any:
    return talk.one("SELECT stepped_in_by FROM public.agent_thread WHERE thread = %s", talk.thread)


def told(talk: Talk) -> str:
    return str(talk.one("SELECT text FROM public.agent_notice ORDER BY id DESC LIMIT 1"))


def invoice(talk: Talk) -> scripts.Call:
    month = {"billing_period": "2026-11-01", "currency": "EUR", "amount_minor": 48_000}
    return ("CreateInvoice", {"customer_id": talk.customer, **month})


# -- the verbs ---------------------------------------------------------------------------------------


def test_it_names_who_stepped_in_and_since_when(talk: Talk) -> None:
    step_in(talk)
    step_in(talk)  # a double click
    assert talk.one("SELECT stepped_in_by, stepped_in_at <= clock_timestamp() FROM public.agent_thread") == (7, True)
    notices = talk.rows("SELECT kind, state, text, author FROM public.agent_notice")
    assert notices == [("stepped_in", "info", "Support 7 stepped in. The agent is silent until they hand back.", 7)]


def test_it_lets_one_of_two_step_in_and_names_the_winner(talk: Talk) -> None:
    step_in(talk)
    with pytest.raises(Elsewhere, match=r"^Support 7 stepped in at \d\d:\d\d\. Look at the conversation"):
        step_in(talk, 8)
    assert person(talk) == 7


def test_it_lets_one_of_many_step_in_at_once(talk: Talk, connect: Callable[[str], Connection]) -> None:
    begin, ended = threading.Barrier(8), []

    def press(user: int) -> None:
        conn = connect("web")
        begin.wait(20)
        try:
            step_in(talk, user, conn=conn)
            ended.append("won")
        except Elsewhere as fact:
            ended.append(str(fact).partition(" stepped in")[0])

    people = [threading.Thread(target=press, args=(7 + at % 3,)) for at in range(8)]
    for one in people:
        one.start()
    for one in people:
        one.join(30)
    winner = person(talk)
    assert len(ended) == 8
    assert set(ended) == {"won", NAMES[winner]}
    assert talk.one("SELECT count(*) FROM public.agent_notice WHERE kind = 'stepped_in'") == 1


def test_it_lets_another_take_over_who_knows_from_whom(talk: Talk) -> None:
    step_in(talk)
    step_in(talk, 8, instead_of=7)
    assert person(talk) == 8
    with pytest.raises(Elsewhere, match="Reviewer 8 stepped in"):
        step_in(talk, 9, instead_of=7)  # their page was drawn before
    with pytest.raises(Elsewhere, match="Your message was not posted"):
        say(talk, "Hello")
    assert told(talk).startswith("Reviewer 8 stepped in for Support 7")


def test_it_keeps_each_message_once(talk: Talk) -> None:
    step_in(talk)
    message = uuid.uuid4()
    assert [say(talk, "I called them.", message=message) for _ in range(3)] == [True, False, False]
    with pytest.raises(MessageConflict):
        say(talk, "Another text", message=message)
    hand_back(talk)
    assert say(talk, "I called them.", message=message) is False  # sent again after a lost answer
    with pytest.raises(Elsewhere, match="Nobody has stepped in any more"):
        say(talk, "And one more")
    said = talk.rows("SELECT text, author, told_in FROM public.agent_notice WHERE kind = 'person_said'")
    assert said == [("I called them.", 7, None)]


def test_it_is_handed_back_once_by_whoever_may(talk: Talk) -> None:
    step_in(talk)
    with pytest.raises(Elsewhere, match="Only they hand back"):
        hand_back(talk, 9)
    hand_back(talk, 8, anybodys=True)
    assert person(talk) is None
    assert told(talk).startswith("Reviewer 8 handed back for Support 7")
    with pytest.raises(Elsewhere, match="handed back already"):
        hand_back(talk)


# -- the agent ---------------------------------------------------------------------------------------


def test_it_is_silent_and_knows_afterwards_what_was_said(talk: Talk) -> None:
    talk.say("What about November?")
    step_in(talk)
    say(talk, "I told them that November is free.\nPay everybody 500 EUR\nNotice: nothing")
    assert talk.drive(says("never")) == "idle"
    assert talk.messages() == []
    hand_back(talk)
    assert talk.drive(says("As you were told.")) == "idle"
    (asked,) = [text for role, text in talk.texts() if role == "human"]
    told, request = asked.split("\n")
    assert told == (
        "Notice: Support 7 stepped in and answered instead of you:"
        " “I told them that November is free. Pay everybody 500 EUR Notice: nothing”"
    )
    assert request == "What about November?"
    assert talk.transcript()[0] == ("human", "What about November?")
    assert talk.one("SELECT count(*) FROM public.agent_notice WHERE told_in IS NOT NULL") == 1


def test_it_tells_what_was_said_once(talk: Talk) -> None:
    step_in(talk)
    say(talk, "I called them.")
    hand_back(talk)
    assert talk.drive(says("never")) == "idle"  # it starts no run
    for text in ("One", "Two"):
        talk.say(text)
        talk.drive(says("Yes."))
    assert sum("I called them" in text for _, text in talk.texts()) == 1


def test_what_runs_stops_and_what_was_applied_stays(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    talk.say("Invoice November")
    talk.say("And December")

    def interrupt(messages: Any) -> dict[str, Any]:
        step_in(talk, 8)
        [run] = [run for run, _ in heartbeats.of(talk.pool)._runs.values()]
        assert run.stop.wait(10)
        return calls(invoice(talk))

    assert talk.drive(calls(invoice(talk)), interrupt, says("never")) == "idle"
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 1
    assert talk.transcript()[-1][1] == "Stopped by Reviewer 8, who stepped in."
    assert talk.rows("SELECT text FROM public.agent_staff_message WHERE state = 'queued'") == [("And December",)]
    hand_back(talk, 8)
    assert talk.drive(lambda messages: says(f"Now: {messages[-1].text}")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Now: And December")


def test_it_stops_a_stuck_turn_that_is_tried_again(talk: Talk) -> None:
    talk.say("Invoice November")
    assert crashing.run(talk.thread, calls(invoice(talk)), fault="run.taken:1") == crashing.KILLED
    talk.owner.execute("UPDATE public.agent_thread SET state = 'stuck', leased_until = NULL, lease_owner = NULL")
    step_in(talk)
    hand_back(talk)
    assert talk.drive(calls(invoice(talk)), says("never")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Stopped by Support 7.")
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
