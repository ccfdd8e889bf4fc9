"""While a person answers instead of the agent it takes no message and no decision; afterwards it goes on with both."""

from typing import Any

import pytest

from agent import stepping_in, sweep
from escalations import lifecycle
from tests.agent import crashing
from tests.agent.crashing import KILLED
from tests.agent.scripts import says
from tests.agent.takeovers import HELD, check, script, step
from tests.agent.talks import Talk


def step_in(talk: Talk) -> None:
    stepping_in.step_in(talk.web, thread=talk.thread, user=talk.support, name="Support 7")


def hand_back(talk: Talk) -> None:
    stepping_in.hand_back(talk.web, thread=talk.thread, user=talk.support, name="Support 7")


def swept(talk: Talk) -> list[Any]:
    talk.owner.execute("UPDATE public.agent_thread SET next_sweep_at = now()")
    with talk.pool.connection() as conn:
        return sweep.sweep(conn)


def test_it_takes_no_message(talk: Talk) -> None:
    step_in(talk)
    talk.say("Invoice November, use the credit")
    assert talk.drive(says("never")) == "idle"
    assert swept(talk) == []
    assert talk.one("SELECT state FROM public.agent_staff_message") == "queued"
    hand_back(talk)
    assert swept(talk) == [talk.thread]
    assert talk.drive(*script(talk)) == "idle"
    check(talk)


def test_it_takes_no_decision_but_makes_previews(talk: Talk) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "waiting"
    step_in(talk)
    lifecycle.ask_preview(talk.web, escalation=talk.question(), user=talk.reviewer)
    assert talk.drive(*script(talk)) == "waiting"
    assert talk.one("SELECT count(*) FROM public.escalations_preview WHERE outcome = 'clean'") == 2
    talk.sign()
    assert talk.drive(*script(talk)) == "waiting"
    assert talk.escalations() == [("approval", "decided")]
    assert swept(talk) == []
    hand_back(talk)
    assert talk.drive(*script(talk)) == "idle"
    check(talk)


@pytest.mark.parametrize("fault", ["decision.read:1", "run.taken:1"])
def test_it_does_not_go_on_with_what_a_dead_worker_had_begun(talk: Talk, fault: str) -> None:
    if fault == "decision.read:1":
        talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    if fault == "decision.read:1":
        assert talk.drive(*script(talk)) == "waiting"
        talk.sign()
    assert crashing.run(talk.thread, *script(talk), fault=fault) == KILLED
    step_in(talk)
    talk.expire()
    talk.drive(step(talk), says("never"))
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0
    assert talk.state() == ("waiting" if fault == "decision.read:1" else "idle")
