"""Nobody decided in time: the system decides for want of a person, the thread goes on, and no person is named."""

from typing import Any

import pytest

from agent import expiry, sweep, tasks
from tests.agent.scripts import says
from tests.agent.takeovers import HELD, step
from tests.agent.talks import Talk

ON = """
INSERT INTO public.agent_policy (rule, tool, value, reason, set_by, set_at)
VALUES ('kill_switch', %s, 1, '-', 1, now() - %s::interval)
"""
OFF = """
WITH asked AS (
    INSERT INTO public.agent_policy_request (rule, tool, value, reason, asked_by, ended_at, ended_by, outcome)
    VALUES ('kill_switch', %(tool)s, 0, '-', 1, now(), 2, 'confirmed') RETURNING id)
INSERT INTO public.agent_policy (rule, tool, value, previous, reason, set_by, confirmed_by, request_id, set_at)
SELECT 'kill_switch', %(tool)s, 0, 1, '-', 1, 2, id, now() - %(ago)s::interval FROM asked
"""


@pytest.fixture
def overdue(talk: Talk) -> Talk:
    """Return a talk whose question nobody decided in time."""
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(step(talk), says("Nobody had time.")) == "waiting"
    talk.owner.execute("UPDATE public.escalations_escalation SET expires_at = now() - interval '1 second'")
    return talk


def expired(talk: Talk) -> list[Any]:
    with talk.pool.connection() as conn:
        return expiry.expire(conn)


def test_it_expires_after_a_day_by_default(talk: Talk) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(step(talk), says("never")) == "waiting"
    assert talk.one("SELECT expires_at - opened_at BETWEEN '23:59' AND '24:01' FROM public.escalations_escalation")
    assert expired(talk) == []


def test_it_decides_as_the_system_and_the_thread_goes_on(overdue: Talk) -> None:
    assert expired(overdue) == [overdue.thread]
    assert overdue.rows("SELECT kind, decided_by, text FROM public.escalations_decision") == [
        ("expire", None, "Nobody decided in time.")
    ]
    assert overdue.escalations() == [("approval", "expired")]
    assert expired(overdue) == []
    assert overdue.drive(step(overdue), says("Nobody had time.")) == "idle"
    assert overdue.one("SELECT count(*) FROM public.ledger_execution") == 0
    assert overdue.texts()[2][1].startswith("EXPIRED: Nobody decided in time.")


def test_it_is_found_by_the_sweeper_when_its_bell_was_lost(overdue: Talk) -> None:
    assert expired(overdue)
    with overdue.pool.connection() as conn:
        assert sweep.sweep(conn) == [overdue.thread]


def test_it_leaves_a_reviewer_at_work_alone(overdue: Talk) -> None:
    claim = "UPDATE public.escalations_escalation SET state = 'claimed', claimed_by = 8, claimed_until = now() + %s::interval"
    overdue.owner.execute(claim, ("1 minute",))
    assert expired(overdue) == []
    overdue.owner.execute(claim, ("-1 minute",))
    assert expired(overdue) == [overdue.thread]


def test_it_expires_nothing_that_was_decided(overdue: Talk) -> None:
    overdue.decide("reject", "Wrong month.")
    assert expired(overdue) == []
    assert overdue.rows("SELECT kind, decided_by FROM public.escalations_decision") == [("reject", overdue.reviewer)]


@pytest.mark.parametrize(
    ("switches", "expires"),
    [
        ([("", 1, "3 hours")], False),
        ([("", 1, "3 hours"), ("", 0, "30 minutes")], False),
        ([("", 1, "3 hours"), ("", 0, "2 hours")], True),
        ([("CreateInvoice", 1, "3 hours")], True),
    ],
)
def test_it_waits_while_changes_are_paused_and_an_hour_longer(overdue: Talk, switches: list[Any], expires: bool) -> None:
    for tool, on, ago in switches:
        overdue.owner.execute(ON, (tool, ago)) if on else overdue.owner.execute(OFF, {"tool": tool, "ago": ago})
    assert bool(expired(overdue)) is expires


def test_it_is_a_task_of_the_agent_s_worker(settings: Any) -> None:
    schedule = settings.CELERY_BEAT_SCHEDULE["expire"]
    assert schedule["task"] == tasks.expire.name == "agent.expire"
