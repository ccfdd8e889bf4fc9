"""What staff see in the conversation of what reviewers do about a request: through the real graph, in words."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from agent import conversations, feeds, standing, stepping_in
from agent.cards import Card
from agent.models import Conversation
from escalations import lifecycle, presence
from tests.agent.batches import move_credit
from tests.agent.scripts import calls, says
from tests.agent.takeovers import HELD, PERIOD, script, step
from tests.agent.talks import Talk

Connection = psycopg.Connection[Any]
Amounts = Callable[..., dict[str, Any]]
UNSAFE = ("SQLSTATE", "billing_invoice", "constraint", "savepoint")


def read(talk: Talk) -> conversations.Rows:
    return conversations.read(Conversation.objects.get(thread=talk.thread))


def items(talk: Talk) -> list[feeds.Item]:
    rows = read(talk)
    return feeds.feed(rows, live=rows.runs, shown=feeds.untold(rows))


def cards(talk: Talk) -> list[Card]:
    return [part.card for item in items(talk) for part in item.parts if part.card]


def news(talk: Talk) -> list[str]:
    """Return what the feed says between messages."""
    return [item.text for item in items(talk) if item.kind == "notice"]


def words(card: Card) -> list[str]:
    return [line.mark.word for line in card.lines]


def stands(talk: Talk) -> str:
    return standing.standing(read(talk), now=timezone.now()).words


def call(talk: Talk, index: int, **changes: Any) -> dict[str, Any]:
    """Return one call of the held step as a reviewer changes it."""
    about = {"customer_id": talk.customer, "billing_period": PERIOD, "currency": "EUR"}
    return {"index": index, "arguments": about | {"amount_minor": (48_000, 12_000)[index]} | changes}


@pytest.fixture
def held(talk: Talk) -> Talk:
    """Return a conversation whose step waits for a reviewer, with its preview."""
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "waiting"
    return talk


def expire(talk: Talk) -> None:
    with talk.pool.connection() as conn:
        lifecycle.expire(conn, escalation=talk.question(), text="Nobody decided in time.")


def goes_on(talk: Talk) -> None:
    assert talk.drive(*script(talk)) == "idle"


# -- while it waits ----------------------------------------------------------------------------------


def test_it_says_for_whom_it_waits_until_when_and_why(held: Talk) -> None:
    (card,) = cards(held)
    assert card.waits is not None
    assert (card.mark.word, card.waits.who) == ("Waits for a reviewer", "a reviewer")
    assert card.waits.since < card.waits.target < card.waits.expires  # type: ignore[operator]
    assert stands(held).startswith("Waits for a reviewer since ")
    assert card.lines[0].limit == "€480.00 asked, €10.00 allowed (per call, v1)"
    assert not any(word in f"{card}" for word in UNSAFE)
    lifecycle.claim(held.web, escalation=held.question(), user=held.reviewer)
    assert stands(held).startswith("Waits for Reviewer 8 since ")
    assert cards(held)[0].waits.who == "Reviewer 8"  # type: ignore[union-attr]


def test_it_says_who_looks_and_who_edits(held: Talk) -> None:
    presence.see(held.web, escalation=held.question(), user=held.reviewer)
    assert stands(held).endswith(" · Reviewer 8 is looking")
    presence.see(held.web, escalation=held.question(), user=held.editor, editing=True)
    assert stands(held).endswith(" · Reviewer 9 is editing it")
    held.owner.execute("UPDATE public.escalations_presence SET seen_at = now() - interval '1 minute'")
    assert " is " not in stands(held)


def test_it_says_how_many_of_two_reviewers_signed(talk: Talk) -> None:
    for rule in ("per_call", "second_reviewer"):
        talk.web.execute(
            "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
            " VALUES (%s, 'CreateInvoice', 'EUR', 1000, 'a test', 1)",
            (rule,),
        )
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "waiting"
    assert "0 of 2 reviewers signed" in stands(talk)
    talk.sign(user=talk.reviewer)
    assert "1 of 2 reviewers signed" in stands(talk)
    talk.sign(user=talk.editor, text="Both of us checked.")
    assert news(talk) == ["Reviewer 8 and Reviewer 9 approved it: “Both of us checked.”"]


# -- what was decided --------------------------------------------------------------------------------


def test_it_says_that_what_was_approved_has_not_run_and_then_that_it_has(held: Talk) -> None:
    held.sign(text="Checked.")
    assert (cards(held)[0].mark.word, cards(held)[0].says) == ("Approved, not run yet", "The decision is kept.")
    assert news(held) == ["Reviewer 8 approved it: “Checked.”"]
    goes_on(held)
    (card,) = cards(held)
    assert (card.mark.word, card.says, words(card)) == ("Applied", "After approval.", ["Applied", "Applied"])
    assert card.history[0].endswith("“Checked.”")


def test_it_says_what_a_reviewer_changed_and_removed(held: Talk) -> None:
    held.revise(call(held, 0, amount_minor=40_000), text="Agreed by phone.")
    assert held.drive(*script(held)) == "waiting"
    held.sign(text="So be it.")
    assert news(held) == ["Reviewer 8 approved it as changed (call 1: amount €480.00 → €400.00; call 2 removed): “So be it.”"]
    goes_on(held)
    (card,) = cards(held)
    assert words(card) == ["Applied", "Removed by Reviewer 9"]
    assert "€400.00" in card.lines[0].sentence
    assert card.lines[0].note == "Changed by Reviewer 9: amount €480.00 → €400.00."
    assert card.lines[1].gone


def test_it_says_that_a_person_did_it_instead(held: Talk) -> None:
    held.revise(call(held, 0), call(held, 1), as_person=True)
    assert held.drive(*script(held)) == "waiting"
    held.sign()
    assert cards(held)[0].mark.word == "Taken over, not run yet"
    goes_on(held)
    (card,) = cards(held)
    assert (card.mark.word, card.says) == ("Applied", "By Reviewer 9, instead of the agent.")
    assert news(held) == ["Reviewer 8 took it over from the agent."]


def test_it_says_who_rejected_it_and_why(held: Talk) -> None:
    held.decide("reject", "Not owed.")
    assert news(held) == ["Reviewer 8 rejected it: “Not owed.”"]
    goes_on(held)
    (card,) = cards(held)
    assert (card.mark.word, words(card)) == ("Rejected", ["Not applied: never ran"] * 2)
    assert "Rejected by Reviewer 8" in card.history[0]


def test_it_says_what_was_answered_once(held: Talk) -> None:
    held.decide("answer", "Ask for the contract first.")
    assert news(held) == ["Reviewer 8 answered: “Ask for the contract first.”"]
    goes_on(held)
    assert news(held) == []
    assert [item.text for item in items(held) if item.kind == "reviewer"] == ["Ask for the contract first."]
    assert cards(held)[0].mark.word == "Answered instead"


def test_it_says_who_withdrew_it(held: Talk) -> None:
    held.decide("withdraw", "They changed their mind.")
    assert news(held) == ["Support 7 withdrew the request: “They changed their mind.”"]
    goes_on(held)
    (card,) = cards(held)
    assert (card.mark.word, card.says) == ("Withdrawn", "Nothing ran. Nothing was changed.")


def test_it_does_not_call_expired_what_was_rejected(held: Talk) -> None:
    expire(held)
    assert news(held) == ["Nobody decided in time: it expired. Nothing ran."]
    goes_on(held)
    (card,) = cards(held)
    assert (card.mark.word, words(card)) == ("Expired undecided", ["Not applied: never ran"] * 2)
    assert "eject" not in f"{card} {news(held)}"


def test_it_says_that_the_data_changed_since_the_approval(held: Talk) -> None:
    held.sign(text="Checked.")
    move_credit(held.owner, held.customer, amount_minor=-100)
    assert held.drive(*script(held)) == "waiting"
    (card,) = cards(held)
    assert card.mark.word == "Changed since the approval"
    assert card.says == "Nothing ran. The data changed since the approval; the reviewer looks again."
    assert words(card) == ["Waits for a reviewer"] * 2
    assert card.waits is not None
    held.decide("reject", "Not any more.")
    assert held.drive(*script(held)) == "idle"
    assert [card.mark.word for card in cards(held)] == ["Changed since the approval", "Rejected"]
    assert news(held) == ["Reviewer 8 approved it: “Checked.”", "Reviewer 8 rejected it: “Not any more.”"]


@pytest.mark.parametrize(
    ("kind", "text", "says_"), [("close", "Solved.", "closed"), ("withdraw", "", "withdrew"), ("expire", "", "decided")]
)
def test_it_says_once_how_a_question_after_answers_ended(talk: Talk, kind: str, text: str, says_: str) -> None:
    talk.say("Use the credit")
    tries = [step(talk, credit=15_000 + number) for number in range(3)]
    assert talk.drive(*tries, says("Done.")) == "waiting"
    if kind == "expire":
        expire(talk)
    else:
        talk.decide(kind, text)
    assert sum(says_ in text for text in news(talk)) == 1
    assert talk.drive(*tries, says("Done.")) == "idle"
    assert sum(says_ in text for text in news(talk)) == 1


def test_it_says_how_a_question_of_the_agents_ended(talk: Talk) -> None:
    talk.say("Which contract?")
    asks = calls(("AskHuman", {"customer_id": talk.customer, "question": "Which contract?"}))
    assert talk.drive(asks) == "waiting"
    assert cards(talk)[0].mark.word == "Waits for a reviewer"
    talk.decide("withdraw")
    assert talk.drive(asks, says("Fine.")) == "idle"
    assert cards(talk)[0].mark.word == "Withdrawn"


# -- a person in between -----------------------------------------------------------------------------


def test_it_says_that_a_decision_waits_for_the_hand_back(held: Talk) -> None:
    stepping_in.step_in(held.web, thread=held.thread, user=held.support, name="Support 7")
    assert stands(held).startswith("Support 7 stepped in at ")
    assert stands(held).endswith("decisions wait for the hand-back")
    stepping_in.say(held.web, thread=held.thread, message=held.thread, user=held.support, text="I called them.")
    held.sign()
    assert held.drive(*script(held)) == "waiting"
    assert stands(held).endswith("decided; it waits for the hand-back")
    assert cards(held)[0].mark.word == "Approved, not run yet"
    stepping_in.hand_back(held.web, thread=held.thread, user=held.support, name="Support 7")
    goes_on(held)
    said = [(item.kind, item.name, item.text) for item in items(held) if item.kind == "person"]
    assert said == [("person", "Support 7", "I called them.")]
    assert cards(held)[0].mark.word == "Applied"
