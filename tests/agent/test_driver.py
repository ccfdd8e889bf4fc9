"""The driver: messages in, answers out, one at a time, whatever happens in between."""

from typing import Any

import pytest

from tests.agent import scripts
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk

PERIOD = "2025-11-01"


def invoice(talk: Talk, amount: int = 48_000) -> scripts.Call:
    return "CreateInvoice", {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": amount, "currency": "EUR"}


def credit(talk: Talk, amount: int) -> scripts.Call:
    return "ApplyCredit", {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": amount, "currency": "EUR"}


def test_it_answers_a_message(talk: Talk) -> None:
    talk.say("Hello")
    assert talk.drive(says("Good morning.")) == "idle"
    assert talk.transcript() == [("human", "Hello"), ("ai", "Good morning.")]
    assert talk.state() == "idle"


def test_it_applies_a_step_and_says_so(talk: Talk) -> None:
    talk.say("Invoice November, use the credit")
    assert talk.drive(calls(invoice(talk), credit(talk, 12_000)), says("Applied.")) == "idle"
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "tool", "ai"]
    assert talk.one("SELECT amount_due_minor FROM public.billing_invoice") == 36_000
    assert [m.id for m in talk.messages()[2:4]] == [f"{talk.messages()[1].id}:{index}" for index in (0, 1)]


def test_it_lets_the_model_correct_a_step_that_was_undone(talk: Talk) -> None:
    talk.say("Invoice November, use the credit")
    script = (calls(invoice(talk), credit(talk, 15_000)), calls(invoice(talk), credit(talk, 12_000)), says("Applied."))
    assert talk.drive(*script) == "idle"
    told = [str(m.text) for m in talk.messages() if m.type == "tool"]
    assert told[0].startswith("NOT APPLIED: undone")
    assert told[1].startswith("FAILED: The credit balance is €120.00")
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 1


def test_it_answers_queued_messages_in_order(talk: Talk) -> None:
    for text in ("one", "two", "three"):
        talk.say(text)
    assert talk.drive(lambda messages: says(f"re {messages[-1].text}")) == "idle"
    assert [text for _, text in talk.transcript()] == ["one", "re one", "two", "re two", "three", "re three"]


def test_it_leaves_out_what_was_cancelled(talk: Talk) -> None:
    first, second = talk.say("one"), talk.say("two")
    talk.web.execute("UPDATE public.agent_staff_message SET state = 'cancelled' WHERE id = %s", (first,))
    talk.drive(says("yes"))
    assert [m.id for m in talk.messages() if m.type == "human"] == [f"staff:{second}"]


def test_it_does_nothing_without_work(talk: Talk) -> None:
    assert talk.drive(says("never")) == "idle"
    assert talk.messages() == []


def test_it_knows_no_thread_without_a_conversation(talk: Talk) -> None:
    talk.thread = type(talk.thread)(int=1)
    assert talk.drive(says("never")) == "unknown"


def test_it_tells_notices_with_the_next_message_once(talk: Talk) -> None:
    for kind, state, text in (("payment_succeeded", "confirmed", "Charge confirmed."), ("resumed", "info", "Go on.")):
        talk.web.execute(
            "INSERT INTO public.agent_notice (thread, kind, state, text, object) VALUES (%s, %s, %s, %s, 'x')",
            (talk.thread, kind, state, text),
        )
    talk.say("Thanks")
    talk.drive(says("Welcome."))
    talk.say("Bye")
    talk.drive(says("Bye."))
    assert [text for role, text in talk.texts() if role == "human"] == ["Notice: Charge confirmed.\nThanks", "Bye"]
    assert [text for role, text in talk.transcript() if role == "human"] == ["Thanks", "Bye"]


def test_it_tells_the_model_the_facts(talk: Talk) -> None:
    model = scripts.model(says("ok"))
    talk.say("Hello")
    talk.drive(model=model)
    system = str(model.chat.prompts[0][0].text)  # type: ignore[attr-defined]
    assert f"\ncustomer_id: {talk.customer}\ncurrency: EUR\ntoday: 20" in system


def test_it_emits_events_for_every_change(talk: Talk) -> None:
    talk.say("Hello")
    talk.drive(says("Good morning."))
    kinds = [row[0] for row in talk.rows("SELECT kind FROM public.agent_event WHERE thread = %s ORDER BY seq", talk.thread)]
    assert kinds == ["status", "feed", "feed", "status"]


def test_it_holds_no_transaction_while_the_model_is_asked(talk: Talk) -> None:
    def look(messages: Any) -> dict[str, Any]:
        open_ones = talk.rows(
            "SELECT state FROM pg_stat_activity WHERE usename = 'backstop_agent' AND datname = current_database()"
            " AND xact_start IS NOT NULL"
        )
        return says(f"{len(open_ones)} open")

    talk.say("Hello")
    talk.drive(calls(invoice(talk)), look)
    assert talk.texts()[-1] == ("ai", "0 open")


def test_it_can_be_rung_again_and_again(talk: Talk) -> None:
    talk.say("Hello")
    assert {talk.drive(says("Hi.")) for _ in range(3)} == {"idle"}
    assert len(talk.transcript()) == 2


@pytest.mark.parametrize("text", ["", "   "])
def test_it_never_ends_a_turn_without_a_word(talk: Talk, text: str) -> None:
    talk.say("Hello")
    talk.drive(says(text))
    assert talk.texts()[-1][1].strip()
