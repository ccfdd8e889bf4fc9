"""The sweeper: whatever was lost, every thread with something to do is rung for, and none is left alone."""

from typing import Any

from agent import leases, sweep
from escalations import lifecycle
from tests import faults
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk


def found(talk: Talk) -> list[Any]:
    with talk.pool.connection() as conn:
        return sweep.sweep(conn)


def due(talk: Talk) -> None:
    talk.owner.execute("UPDATE public.agent_thread SET next_sweep_at = now()")


def rolled_back(talk: Talk) -> None:
    bad = {"customer_id": talk.customer, "amount_minor": 0, "currency": "EUR"}
    talk.say("Fail")
    assert talk.drive(*[calls(("ApplyCredit", bad | {"amount_minor": -n})) for n in range(3)], says("After.")) == "waiting"


def test_it_finds_a_message_whose_bell_was_lost(talk: Talk) -> None:
    talk.say("Hello")
    assert found(talk) == [talk.thread]
    talk.drive(says("Hi."))
    assert found(talk) == []
    talk.say("Again")
    assert found(talk) == [talk.thread]


def test_it_leaves_alone_what_runs(talk: Talk) -> None:
    talk.say("Hello")
    with talk.pool.connection() as conn:
        assert leases.acquire(conn, thread=talk.thread)
    assert found(talk) == []


def test_it_finds_what_a_dead_worker_left(talk: Talk) -> None:
    with talk.pool.connection() as conn:
        assert leases.acquire(conn, thread=talk.thread)
    talk.expire()
    assert found(talk) == [talk.thread]


def test_it_rings_not_too_often(talk: Talk) -> None:
    talk.say("Hello")
    with talk.pool.connection() as conn:
        lease = leases.acquire(conn, thread=talk.thread)
        assert lease
        leases.leave(conn, lease, at_once=False)
    assert found(talk) == [talk.thread]
    assert found(talk) == []
    due(talk)
    assert found(talk) == [talk.thread]


def test_it_leaves_alone_what_waits_for_a_person(talk: Talk) -> None:
    rolled_back(talk)
    talk.say("Hello?")
    assert found(talk) == []


def test_it_finds_a_preview_that_somebody_waits_for(talk: Talk) -> None:
    rolled_back(talk)
    lifecycle.ask_preview(talk.web, escalation=talk.question(), user=talk.reviewer)
    assert found(talk) == [talk.thread]
    assert talk.drive(says("never")) == "waiting"
    assert found(talk) == []


def test_it_finds_a_decision_that_nobody_took(talk: Talk) -> None:
    rolled_back(talk)
    talk.decide("answer", "Stop.")
    assert found(talk) == [talk.thread]
    assert talk.drive(*[says("")] * 3, says("Stopped.")) == "idle"
    assert found(talk) == []


def test_it_puts_a_thread_before_a_person_after_eight_drives_without_progress(talk: Talk) -> None:
    talk.say("Hello")
    for _ in range(leases.CAP):
        with talk.pool.connection() as conn:
            lease = leases.acquire(conn, thread=talk.thread)
            assert lease
            leases.leave(conn, lease, at_once=False)
        due(talk)
    assert found(talk) == []
    assert talk.state() == "stuck"
    assert talk.escalations() == [("infrastructure", "open")]
    due(talk)
    assert found(talk) == []


def test_it_lets_a_stuck_thread_go_on_when_somebody_rings(talk: Talk) -> None:
    test_it_puts_a_thread_before_a_person_after_eight_drives_without_progress(talk)
    assert talk.drive(says("Here I am again.")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Here I am again.")


def test_it_asks_nobody_any_more_once_a_stuck_thread_came_to_its_end(talk: Talk) -> None:
    test_it_lets_a_stuck_thread_go_on_when_somebody_rings(talk)
    assert talk.escalations() == [("infrastructure", "done")]
    decision = talk.owner.execute("SELECT kind, decided_by, text FROM public.escalations_decision").fetchall()
    assert decision == [("settle", None, sweep.WENT_ON)]


def test_it_goes_on_asking_while_a_stuck_thread_stays_stuck(talk: Talk, superuser: Any) -> None:
    test_it_puts_a_thread_before_a_person_after_eight_drives_without_progress(talk)
    with faults.refusing(superuser, "UPDATE", "agent_staff_message"):
        assert talk.drive(says("never")) == "left"
    assert talk.escalations() == [("infrastructure", "open")]


def test_it_leaves_a_question_about_a_stuck_thread_that_a_person_closed(talk: Talk) -> None:
    test_it_puts_a_thread_before_a_person_after_eight_drives_without_progress(talk)
    talk.decide("close", "Seen.")
    assert talk.drive(says("Here I am again.")) == "idle"
    assert talk.one("SELECT kind FROM public.escalations_decision") == "close"


def test_it_counts_failing_drives(talk: Talk, superuser: Any) -> None:
    talk.say("Hello")
    with faults.refusing(superuser, "UPDATE", "agent_staff_message"):  # nothing can be taken from the queue
        for drives in (1, 2):
            assert talk.drive(says("never")) == "left"
            assert talk.one("SELECT sweeps FROM public.agent_thread") == drives
    assert talk.one("SELECT next_sweep_at > now() FROM public.agent_thread") is True
    assert talk.drive(says("Hi.")) == "idle"
    assert talk.transcript() == [("human", "Hello"), ("ai", "Hi.")]


def test_it_finds_a_message_of_a_thread_that_never_ran(talk: Talk) -> None:
    talk.say("Hello")
    assert talk.one("SELECT count(*) FROM public.agent_thread") == 0
    assert found(talk) == [talk.thread]


def test_it_rings_once_when_two_sweep(talk: Talk) -> None:
    talk.web.execute("INSERT INTO public.agent_thread (thread) VALUES (%s)", (talk.thread,))
    talk.say("Hello")
    assert [found(talk), found(talk)] == [[talk.thread], []]
