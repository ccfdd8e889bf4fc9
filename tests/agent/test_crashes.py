"""Kill a worker with SIGKILL anywhere; whoever drives next brings the thread to the same end, with every effect once."""

import pytest

from tests.agent import crashing
from tests.agent.crashing import KILLED
from tests.agent.scripts import says
from tests.agent.takeovers import step
from tests.agent.talks import Talk


def check(talk: Talk, *roles: str) -> None:
    """Compare with a run that nothing interrupted."""
    assert [role for role, _ in talk.texts()] == list(roles)
    assert [role for role, _ in talk.transcript()] == list(roles)
    assert talk.state() == "idle"
    assert talk.rows("SELECT state FROM public.agent_staff_message") == [("taken",)]
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2
    assert talk.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(36_000,)]
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account") == 0
    assert len({m.id for m in talk.messages()}) == len(roles)


POINTS = [
    "agent.queue:take:before:1",
    "agent.queue:take:after:1",
    *[f"agent.checkpoints:FencedSaver.put:{when}:{n}" for n in range(1, 6) for when in ("before", "after")],
    *[f"agent.checkpoints:FencedSaver.put_writes:{when}:{n}" for n in range(1, 5) for when in ("before", "after")],
    "agent.llm:stream:before:1",
    "agent.llm:stream:after:2",
    "agent.batch:run_batch:before:1",
    "agent.batch:run_batch:after:1",
    "ledger.executions:record:after:1",
    "ledger.attempts:begin:after:1",
    "agent.leases:release:before:1",
    "agent.leases:release:after:1",
]


@pytest.mark.parametrize("point", POINTS)
def test_it_ends_the_same_wherever_a_worker_is_killed(talk: Talk, point: str) -> None:
    talk.say("Invoice November, use the credit")
    script = (step(talk), says("Applied."))
    assert crashing.run(talk.thread, *script, point=point) == KILLED
    talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai")


@pytest.mark.parametrize("point", ["agent.batch:run_batch:after:1", "agent.checkpoints:FencedSaver.put:before:4"])
def test_it_counts_a_failed_step_once_however_often_it_is_run_again(talk: Talk, point: str) -> None:
    talk.say("Invoice November, use the credit")
    script = (step(talk, credit=15_000), step(talk), says("Applied."))
    for _ in range(2):
        assert crashing.run(talk.thread, *script, point=point) == KILLED
        talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai", "tool", "tool", "ai")
    assert talk.escalations() == []


QUESTIONS = [
    "escalations.lifecycle:open:before:1",
    "escalations.lifecycle:open:after:1",
    "agent.leases:release:before:1",
]


def held(talk: Talk) -> None:
    talk.web.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('per_call', 'CreateInvoice', 'EUR', 1000, 'a test', 1)"
    )
    talk.say("Invoice November, use the credit")


@pytest.mark.parametrize("point", QUESTIONS)
def test_it_asks_once_wherever_a_worker_is_killed(talk: Talk, point: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert crashing.run(talk.thread, *script, point=point) == KILLED
    talk.expire()
    assert talk.drive(*script) == "waiting"
    assert talk.escalations() == [("approval", "open")]
    assert talk.one("SELECT count(*) FROM public.escalations_revision") == 1


RESUMES = [
    "escalations.lifecycle:mark_resumed:after:1",
    "agent.driver:_Drive._invoke:before:1",
    "agent.checkpoints:FencedSaver.put_writes:before:1",
    "agent.checkpoints:FencedSaver.put_writes:after:1",
    "agent.checkpoints:FencedSaver.put:before:1",
    "agent.checkpoints:FencedSaver.put:after:1",
    "agent.batch:run_batch:after:1",
    "agent.leases:release:before:1",
]


@pytest.mark.parametrize("point", RESUMES)
def test_it_hands_a_decision_over_until_it_is_taken(talk: Talk, point: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert talk.drive(*script) == "waiting"
    talk.decide("approve")
    assert crashing.run(talk.thread, *script, point=point) == KILLED
    talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai")
    assert talk.escalations() == [("approval", "done")]
