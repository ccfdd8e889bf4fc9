"""What reaches a conversation from outside: told once, in words, in the transaction that it is about."""

from typing import Any
from uuid import UUID

import pytest

from agent import settled
from outbox.outcomes import Outcome
from tests.agent.talks import Talk


def message(talk: Talk, **changes: Any) -> dict[str, Any]:
    payload = {"invoice_id": 12, "amount_minor": 36_000, "currency": "EUR", "card_last4": "4242"}
    given = {"id": 5, "thread": talk.thread, "topic": "payment.charge", "destination": "stripe", "payload": payload}
    return given | changes


@pytest.mark.parametrize(
    ("outcome", "state", "ending"),
    [
        (Outcome(kind="succeeded"), "confirmed", "confirmed by Stripe."),
        (Outcome(kind="rejected", refusal="insufficient_funds"), "failed", "refused (insufficient funds). Nothing was moved."),
        (Outcome(kind="rejected"), "failed", "refused. Nothing was moved."),
        (Outcome(kind="uncertain"), "uncertain", "please do not ask for it again."),
        (Outcome(kind="dead"), "uncertain", "please do not ask for it again."),
        (Outcome(kind="accepted"), "sent", "it is not final yet."),
        (Outcome(kind="cancelled"), "undone", "withdrawn before it was sent."),
    ],
)
def test_it_says_what_became_of_an_effect(talk: Talk, outbox: Any, outcome: Outcome, state: str, ending: str) -> None:
    settled.tell_conversation(outbox, message=message(talk), outcome=outcome)
    [(found, kind, text)] = talk.rows("SELECT state, kind, text FROM public.agent_notice")
    assert (found, kind) == (state, f"payment_{outcome.kind}")
    assert text.startswith("Charge €360.00 to the card ending in 4242")
    assert text.endswith(ending)
    assert talk.rows("SELECT kind FROM public.agent_event") == [("feed",)]


def test_it_says_it_once(talk: Talk, outbox: Any) -> None:
    for _ in range(2):
        settled.tell_conversation(outbox, message=message(talk), outcome=Outcome(kind="succeeded"))
    assert talk.one("SELECT count(*) FROM public.agent_notice") == 1


@pytest.mark.parametrize(("changes", "kind"), [({"thread": None}, "succeeded"), ({}, "retry"), ({}, "park")])
def test_it_tells_nobody_what_concerns_nobody(talk: Talk, outbox: Any, changes: Any, kind: Any) -> None:
    settled.tell_conversation(outbox, message=message(talk, **changes), outcome=Outcome(kind=kind))
    assert talk.one("SELECT count(*) FROM public.agent_notice") == 0


@pytest.mark.parametrize("login", ["web", "agent", "outbox"])
def test_it_tells_browsers_of_a_question(talk: Talk, connect: Any, login: str) -> None:
    settled.tell_escalation(connect(login), escalation={"thread": talk.thread})
    settled.tell_escalation(connect(login), escalation={"thread": None})
    assert talk.rows("SELECT thread, kind FROM public.agent_event") == [(talk.thread, "escalation")]


def test_it_is_told_again_to_other_threads(talk: Talk, outbox: Any) -> None:
    for thread in (talk.thread, UUID(int=1)):
        settled.tell_conversation(outbox, message=message(talk, thread=thread), outcome=Outcome(kind="succeeded"))
    assert talk.one("SELECT count(*) FROM public.agent_notice") == 2


def test_it_says_once_what_the_provider_takes_back(talk: Talk, outbox: Any) -> None:
    concern = "It was carried out, but now Stripe says: failed."
    for _ in range(2):
        settled.tell_contradiction(outbox, message=message(talk, state="succeeded"), concern=concern)
    settled.tell_contradiction(outbox, message=message(talk, state="succeeded", thread=None), concern=concern)
    [(found, text)] = talk.rows("SELECT state, text FROM public.agent_notice")
    assert found == "uncertain"
    assert text.endswith(": it was carried out, but now Stripe says: failed. A person will look.")
