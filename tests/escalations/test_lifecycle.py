"""Every verb in every state; one winner; four eyes."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.utils import timezone

from escalations import desk, facts, lifecycle, policies, previews
from escalations.models import Escalation
from ledger import wiring
from tests.escalations.questions import ask, edited, made, row, show, sign
from tests.escalations.scenes import person

STATES = [state.value for state in Escalation.State]
VERBS = ["claim", "release", "reassign", "snooze", "wake", "revise", "sign", "decide", "expire", "settle", "resume", "finish"]
TOMORROW = timedelta(hours=20)


def fail(conn: Any, *, escalation: dict[str, Any]) -> None:
    """A listener that is plugged in and breaks."""
    raise RuntimeError("the listener broke")


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi")}


def bring_to(state: str, *, agent: Any, web: Any, user: int) -> int:
    """Return an escalation in this state, by the verbs that lead there."""
    escalation = ask(agent, kind="rollbacks", waits=state != "done")
    interrupt = row(web, escalation, "interrupt_id")
    if state == "claimed":
        lifecycle.claim(web, escalation=escalation, user=user)
    if state in ("decided", "resumed", "done"):
        lifecycle.decide(web, escalation=escalation, kind="answer", text="Yes.", user=user)
    if state == "resumed":
        lifecycle.mark_resumed(agent, interrupt_ids=[interrupt])
    if state == "expired":
        lifecycle.expire(agent, escalation=escalation, text="Nobody came.")
    assert row(web, escalation) == state
    return escalation


def run(verb: str, *, escalation: int, agent: Any, web: Any, user: int) -> None:
    thread, interrupt, about = row(web, escalation, "thread, interrupt_id, object")
    verbs: dict[str, Callable[[], Any]] = {
        "claim": lambda: lifecycle.claim(web, escalation=escalation, user=user),
        "release": lambda: lifecycle.release(web, escalation=escalation, user=user),
        "reassign": lambda: lifecycle.reassign(web, escalation=escalation, user=user, to=user),
        "snooze": lambda: lifecycle.snooze(web, escalation=escalation, user=user, until=timezone.now() + TOMORROW),
        "wake": lambda: lifecycle.wake_up(web, escalation=escalation, user=user),
        "revise": lambda: lifecycle.revise(web, escalation=escalation, user=user, calls=edited(), shown=0),
        "sign": lambda: first_of_two(agent, web, escalation, user=user),
        "decide": lambda: lifecycle.decide(web, escalation=escalation, kind="answer", text="Yes.", user=user),
        "expire": lambda: lifecycle.expire(agent, escalation=escalation, text=""),
        "settle": lambda: lifecycle.settle(agent, object=about, text="It came right."),
        "resume": lambda: lifecycle.mark_resumed(agent, interrupt_ids=[interrupt]),
        "finish": lambda: lifecycle.mark_done(agent, thread=thread),
    }
    verbs[verb]()


def first_of_two(agent: Any, web: Any, escalation: int, *, user: int) -> None:
    """Sign an edit that somebody else has made, and that needs another signature."""
    other = person("tom", "reviewer").id
    held = row(web, escalation, "claimed_by")
    lifecycle.revise(web, escalation=escalation, user=held or other, calls=edited(), shown=0)
    assert sign(web, escalation, user, show(agent, escalation, held=False, needs=2)).decision is None


@pytest.mark.parametrize("state", STATES)
def test_it_goes_where_the_table_says_and_nowhere_else(agent: Any, web: Any, people: Any, state: str) -> None:
    silent = ("release", "settle", "resume", "finish")  # nothing happens where others say who was first
    for verb in VERBS:
        escalation = bring_to(state, agent=agent, web=web, user=people["priya"])
        target = policies.target(state=state, verb=verb)
        if (state, verb) == ("decided", "finish"):
            target = None  # a thread waits for this one: it is resumed first
        refused = target is None and verb not in silent
        try:
            run(verb, escalation=escalation, agent=agent, web=web, user=people["priya"])
        except facts.AlreadyDecided as fact:
            assert refused, verb
            assert fact.name in ("priya", "the system")
        else:
            assert not refused, verb
        assert row(web, escalation) == (target or state), verb


# -- opening -----------------------------------------------------------------------------------


def test_it_is_opened_once_for_an_interrupt(agent: Any, web: Any) -> None:
    thread = uuid.uuid4()
    same = {"kind": "asked", "object": f"thread:{thread}", "payload": {"reason": "Why."}, "thread": thread, "interrupt_id": "i-1"}
    assert lifecycle.open(agent, **same) == lifecycle.open(agent, **same)
    lifecycle.expire(agent, escalation=1, text="")
    assert lifecycle.open(agent, **same) == 1
    assert ask(agent) == 2  # asking again has used up no number


def test_it_is_opened_once_by_two_workers_at_a_time(connect: Callable[[str], Any], web: Any) -> None:
    thread, barrier = uuid.uuid4(), Barrier(8)
    workers = [connect("agent") for _ in range(8)]

    def open_one(conn: Any) -> int:
        barrier.wait(10)
        return lifecycle.open(
            conn, kind="asked", object=f"thread:{thread}", payload={"reason": "Why."}, thread=thread, interrupt_id="i-1"
        )

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(open_one, workers))) == 1


def test_one_object_has_one_open_escalation(agent: Any, web: Any) -> None:
    first = lifecycle.open(agent, kind="dirty_state", object="invoice:7", payload={"reason": "They differ."})
    assert lifecycle.open(agent, kind="unknown_outcome", object="invoice:7", payload={"reason": "Nobody knows."}) == first
    with pytest.raises(facts.StillOpen):
        lifecycle.open(agent, kind="asked", object="invoice:7", payload={"reason": "Why."}, interrupt_id="i-9")


def test_a_new_one_opens_after_the_decision(agent: Any, web: Any, people: Any) -> None:
    first = lifecycle.open(agent, kind="dirty_state", object="invoice:7", payload={"reason": "They differ."})
    lifecycle.decide(web, escalation=first, kind="close", text="", user=people["priya"])
    assert lifecycle.open(agent, kind="dirty_state", object="invoice:7", payload={"reason": "Again."}) != first


def test_its_target_follows_its_kind(agent: Any, web: Any) -> None:
    for kind in ("approval", "dirty_state"):
        opened, due = row(web, ask(agent, kind=kind), "opened_at, due_at")
        assert (due - opened).total_seconds() == 60 * policies.TARGETS[kind]


# -- deciding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["approve", "take_over", "edit", "drop", "withdraw"])
def test_what_is_signed_edited_or_withdrawn_has_a_verb_of_its_own(agent: Any, web: Any, people: Any, kind: str) -> None:
    escalation = ask(agent, kind="approval")
    with pytest.raises(facts.NotAllowed):
        lifecycle.decide(web, escalation=escalation, kind=kind, text="Because.", user=people["priya"])


def test_whoever_asked_may_reject_it(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    lifecycle.decide(web, escalation=escalation, kind="reject", text="A mistake of mine.", user=people["nina"])


@pytest.mark.parametrize(("kind", "decision"), [("approval", "reject"), ("asked", "answer")])
def test_it_asks_for_words(agent: Any, web: Any, people: Any, kind: str, decision: str) -> None:
    escalation = ask(agent, kind=kind)
    with pytest.raises(facts.TextMissing):
        lifecycle.decide(web, escalation=escalation, kind=decision, text="  ", user=people["priya"])


def test_an_unknown_escalation_is_said_to_be_unknown(web: Any, people: Any) -> None:
    with pytest.raises(facts.NotFound, match="E-404"):
        lifecycle.decide(web, escalation=404, kind="close", text="", user=people["priya"])


def test_decision_and_event_are_one_commit(agent: Any, web: Any, people: Any, settings: Any) -> None:
    escalation = ask(agent)
    events = "SELECT count(*) FROM public.agent_event WHERE kind = 'escalation'"
    (before,) = web.execute(events).fetchone()
    settings.BACKSTOP_ON_ESCALATION = [*settings.BACKSTOP_ON_ESCALATION, f"{__name__}.fail"]
    wiring.plugged_all.cache_clear()
    try:
        with pytest.raises(RuntimeError):
            lifecycle.decide(web, escalation=escalation, kind="answer", text="Yes.", user=people["priya"])
    finally:
        wiring.plugged_all.cache_clear()
    assert (row(web, escalation), web.execute(events).fetchone()) == ("open", (before,))
    settings.BACKSTOP_ON_ESCALATION = settings.BACKSTOP_ON_ESCALATION[:-1]
    lifecycle.decide(web, escalation=escalation, kind="answer", text="Yes.", user=people["priya"])
    assert (row(web, escalation), web.execute(events).fetchone()) == ("decided", (before + 1,))


# -- what the thread gets ------------------------------------------------------------------------


def test_the_thread_gets_the_decision(agent: Any, web: Any, people: Any) -> None:
    escalation, undecided = ask(agent), ask(agent)
    interrupts = [row(web, one, "interrupt_id") for one in (escalation, undecided)]
    decision = lifecycle.decide(web, escalation=escalation, kind="answer", text=" The blue one. ", user=people["priya"])
    found = lifecycle.decisions_for(agent, interrupt_ids=interrupts)
    assert found == {interrupts[0]: decision.as_resume_value()}
    assert found[interrupts[0]] == {
        "decision": decision.id, "kind": "answer", "text": "The blue one.",
        "decided_by": people["priya"], "name": "priya", "revision": None,
    }  # fmt: skip


def test_an_expired_one_is_the_systems_decision(agent: Any, web: Any) -> None:
    escalation = ask(agent)
    interrupt = row(web, escalation, "interrupt_id")
    lifecycle.expire(agent, escalation=escalation, text="Nobody decided for a day.")
    found = lifecycle.decisions_for(agent, interrupt_ids=[interrupt])[interrupt]
    assert (found["kind"], found["decided_by"], found["name"]) == ("expire", None, "the system")


def test_one_that_came_right_is_settled_once(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="infrastructure", object="stuck:x", waits=False)
    lifecycle.claim(web, escalation=escalation, user=people["nina"])
    decision = lifecycle.settle(agent, object="stuck:x", text="It came right.")
    assert decision
    assert (decision.kind, decision.decided_by, decision.name) == ("settle", None, "the system")
    assert lifecycle.settle(agent, object="stuck:x", text="Again.") is None
    with pytest.raises(facts.AlreadyDecided, match="by the system"):
        lifecycle.decide(web, escalation=escalation, kind="close", text="", user=people["nina"])


def test_the_verbs_work_on_djangos_own_connection(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    desk.claim(escalation=escalation, user=people["priya"])
    number = desk.revise(escalation=escalation, user=people["priya"], calls=edited(), shown=0)
    preview = desk.ask_preview(escalation=escalation, user=people["priya"])
    assert previews.store(agent, preview=preview, made=made())
    assert desk.see(escalation=escalation, user=people["ravi"]) == []
    desk.release(escalation=escalation, user=people["priya"])
    signed = desk.sign(escalation=escalation, user=people["ravi"], revision=number, preview=preview)
    assert signed.decision
    assert signed.decision.waived == [{"call_index": 0, "rule": "per_call", "measured": 60_000}]
    assert row(web, escalation) == "decided"
