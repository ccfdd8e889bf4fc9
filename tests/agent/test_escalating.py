"""Questions to people: asked once, waited for, answered by rows, and resumed by whoever drives next."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agent import driver, leases, preamble
from agent.budgets import Limits
from agent.runs import Run
from agent.state import GRAPH_VERSION
from agent.tools import registry
from escalations import lifecycle
from tests.agent.batches import move_credit
from tests.agent.scripts import calls, model, says
from tests.agent.talks import Talk

PERIOD = "2025-11-01"


def invoice(talk: Talk, amount: int = 48_000) -> Any:
    return "CreateInvoice", {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": amount, "currency": "EUR"}


def credit(talk: Talk, amount: int) -> Any:
    return "ApplyCredit", {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": amount, "currency": "EUR"}


def held(talk: Talk) -> None:
    """Bring the talk to a question before answers: a credit memo above its limit."""
    talk.web.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('per_call', 'CreateInvoice', 'EUR', 1000, 'a test', 1)"
    )
    talk.say("Invoice November")
    assert talk.drive(calls(invoice(talk)), says("After that.")) == "waiting"


def rolled_back(talk: Talk) -> None:
    """Bring the talk to a question after answers: three attempts that failed."""
    talk.say("Use the credit")
    assert talk.drive(*[calls(invoice(talk), credit(talk, 15_000 + n)) for n in range(3)], says("After that.")) == "waiting"


def asked(talk: Talk) -> None:
    talk.say("What now?")
    question = "AskHuman", {"customer_id": talk.customer, "question": "May I?"}
    assert talk.drive(calls(question), says("After that.")) == "waiting"


def payload(talk: Talk) -> dict[str, Any]:
    newest = "SELECT payload FROM public.escalations_escalation WHERE thread = %s ORDER BY id DESC LIMIT 1"
    return dict(talk.one(newest, talk.thread))


def test_it_escalates_after_three_attempts(talk: Talk) -> None:
    rolled_back(talk)
    assert talk.escalations() == [("rollbacks", "open")]
    asked_of_people = payload(talk)
    assert asked_of_people["phase"] == "after_answers"
    assert asked_of_people["reason"].startswith("3 attempts failed and nothing of them was saved. The last one: The credit bal")
    assert asked_of_people["calls"][0]["proposed"].startswith("Create an invoice of €480.00")
    assert asked_of_people["staff_message"] == "Use the credit"
    assert talk.state() == "waiting"
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
    tools = [m for m in talk.messages() if m.type == "tool"]
    assert len(tools) == 6


def test_it_opens_one_escalation_however_often_it_is_rung(talk: Talk) -> None:
    rolled_back(talk)
    talk.owner.execute("UPDATE public.agent_thread SET state = 'running' WHERE thread = %s", (talk.thread,))
    assert talk.drive(says("never")) == "waiting"
    assert talk.escalations() == [("rollbacks", "open")]


def test_it_keeps_new_messages_waiting_with_the_thread(talk: Talk) -> None:
    rolled_back(talk)
    talk.say("Hello?")
    assert talk.drive(says("never")) == "waiting"
    assert talk.one("SELECT state FROM public.agent_staff_message WHERE number = 2") == "queued"
    talk.decide("answer", "Use €120.00.")
    assert talk.drive(lambda messages: says(f"re {messages[-1].text}")) == "idle"
    assert [text for _, text in talk.texts()[-4:]] == [
        "A reviewer answers: Use €120.00.", "re A reviewer answers: Use €120.00.", "Hello?", "re Hello?",
    ]  # fmt: skip


def test_it_does_nothing_while_nobody_decided(talk: Talk) -> None:
    held(talk)
    fence = talk.one("SELECT fence FROM public.agent_thread")
    assert talk.drive(says("never")) == "waiting"
    assert talk.one("SELECT fence FROM public.agent_thread") == fence


def test_it_holds_a_step_with_its_calls_unanswered(talk: Talk) -> None:
    held(talk)
    assert talk.escalations() == [("approval", "open")]
    last = talk.messages()[-1]
    assert isinstance(last, AIMessage)
    assert last.tool_calls
    asked_of_people = payload(talk)
    assert asked_of_people["phase"] == "before_answers"
    assert [v["rule"] for v in asked_of_people["verdicts"]] == ["per_call"]
    assert talk.one("SELECT calls->0->>'tool' FROM public.escalations_revision") == "CreateInvoice"


def test_it_runs_what_was_approved(talk: Talk) -> None:
    held(talk)
    talk.decide("approve")
    assert talk.drive(says(""), says("After that.")) == "idle"
    assert talk.one("SELECT amount_minor FROM public.billing_invoice") == 48_000
    assert talk.escalations() == [("approval", "done")]
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "ai"]


def test_it_answers_a_rejected_step_with_the_reason(talk: Talk) -> None:
    held(talk)
    talk.decide("reject", "Wrong month.")
    assert talk.drive(says(""), says("Understood.")) == "idle"
    assert talk.texts()[2][1].startswith("REJECTED: Wrong month.")
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
    assert talk.one("SELECT outcome FROM public.ledger_attempt_outcome ORDER BY closed_at DESC LIMIT 1") == "rejected"


def test_it_answers_the_model_that_asked(talk: Talk) -> None:
    asked(talk)
    assert payload(talk)["question"] == "May I?"
    talk.decide("answer", "Yes.")
    assert talk.drive(says(""), says("Thank you.")) == "idle"
    assert [text for _, text in talk.texts()[-3:]] == [
        "ASKED: a person was asked. Wait for the answer.", "A reviewer answers: Yes.", "Thank you.",
    ]  # fmt: skip


def test_it_retries_the_last_step_only_and_replaces_its_answers(talk: Talk) -> None:
    rolled_back(talk)
    before = [m.id for m in talk.messages()]
    move_credit(talk.owner, talk.customer, amount_minor=8_000)
    talk.decide("retry")
    assert talk.drive(*[says("")] * 3, says("Applied after all.")) == "idle"
    assert [m.id for m in talk.messages()][:-1] == before
    assert [m.status for m in talk.messages() if m.type == "tool"][-2:] == ["success", "success"]  # type: ignore[attr-defined]
    assert talk.one("SELECT generation FROM public.ledger_attempt_outcome ORDER BY closed_at DESC LIMIT 1") == 1


@pytest.mark.parametrize("bring", [rolled_back, asked])
def test_it_ends_the_turn_that_was_closed(talk: Talk, bring: Any) -> None:
    bring(talk)
    talk.decide("close", "No need.")
    assert talk.drive(says("never")) == "idle"
    assert talk.texts()[-1] == ("ai", "Reviewer 8 closed this. Nothing more was done. No need.")
    talk.say("Next")
    assert talk.drive(lambda messages: says("Of course.")) == "idle"


def test_it_asks_when_a_turn_takes_too_many_thoughts(talk: Talk) -> None:
    look = "LookUpCustomer", {"customer_id": talk.customer}
    talk.say("Look")
    assert talk.drive(calls(look), limits=Limits(model_calls=4)) == "waiting"
    assert talk.escalations() == [("budget", "open")]
    assert sum(m.type == "ai" for m in talk.messages()) == 4
    talk.decide("answer", "Stop looking.")
    assert talk.drive(calls(look), calls(look), calls(look), calls(look), says("Stopped looking.")) == "idle"


def test_it_asks_when_the_very_same_step_fails_again_and_again(talk: Talk) -> None:
    look, bad = ("LookUpCustomer", {"customer_id": talk.customer}), credit(talk, 15_000)
    talk.say("Loop")
    assert talk.drive(*[calls(bad), calls(look)] * 6) == "waiting"
    assert talk.escalations() == [("budget", "open")]
    assert "same failing step 3 times" in payload(talk)["reason"]


def test_it_asks_when_the_model_cannot_be_reached_and_goes_on_later(talk: Talk) -> None:
    talk.say("Hello")
    assert talk.drive(ConnectionError("refused")) == "waiting"
    assert talk.escalations() == [("infrastructure", "open")]
    assert "could not be reached" in payload(talk)["reason"]
    talk.decide("retry")
    assert talk.drive(says("Here I am.")) == "idle"
    assert talk.texts() == [("human", "Hello"), ("ai", "Here I am.")]


def test_it_counts_failures_anew_after_a_decision(talk: Talk) -> None:
    rolled_back(talk)
    talk.decide("answer", "Try less.")
    more = [calls(invoice(talk), credit(talk, 16_000 + n)) for n in range(2)]
    assert talk.drive(*[says("")] * 3, *more, says("I give up.")) == "idle"
    assert talk.escalations() == [("rollbacks", "done")]


def test_it_asks_again_about_the_next_step(talk: Talk) -> None:
    held(talk)
    talk.decide("approve")
    other = ("CreateInvoice", invoice(talk)[1] | {"billing_period": "2025-12-01"})
    assert talk.drive(says(""), calls(other), says("never")) == "waiting"
    assert talk.escalations() == [("approval", "resumed"), ("approval", "open")]
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 1


def resume_as_approved(talk: Talk) -> None:
    """Resume the thread's question with an approval, whatever the rows say: a driver that lies."""
    with talk.pool.connection() as conn:
        lease = leases.acquire(conn, thread=talk.thread, graph_version=GRAPH_VERSION)
        assert lease
        asked_in = talk.one("SELECT interrupt_id FROM public.escalations_escalation")
        decided = lifecycle.decisions_for(conn, interrupt_ids=[asked_in])
    run = Run(pool=talk.pool, lease=lease, subject=talk.customer, model=model(says(""), says("never")), tools=registry())
    driver._Drive(run=run)._resume({asked_in: decided[asked_in] | {"kind": "approve"}})
    talk.expire()


def test_it_believes_no_approval_that_only_the_thread_s_state_claims(talk: Talk) -> None:
    held(talk)
    talk.decide("reject", "No.")
    resume_as_approved(talk)
    assert talk.drive(says(""), says("never")) == "waiting"
    assert talk.escalations() == [("approval", "resumed"), ("approval", "open")]
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0


def test_it_asks_before_answers_when_the_database_stays_away_and_runs_the_step_later(talk: Talk, superuser: Any) -> None:
    key = preamble.lock_key(talk.thread)
    talk.say("Invoice November")
    superuser.execute("SELECT pg_advisory_lock(%s)", (key,))
    try:
        assert talk.drive(calls(invoice(talk)), says("Applied.")) == "waiting"
    finally:
        superuser.execute("SELECT pg_advisory_unlock(%s)", (key,))
    assert talk.escalations() == [("infrastructure", "open")]
    assert payload(talk)["phase"] == "before_answers"
    assert talk.messages()[-1].type == "ai"
    talk.decide("retry")
    assert talk.drive(says(""), says("Applied.")) == "idle"
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 1
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "ai"]
