"""Every verb in every state; one winner; four eyes."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg import errors

from escalations import facts, lifecycle, permissions, policies
from escalations.models import Escalation
from ledger import wiring
from tests import databases, plugin
from tests.escalations.scenes import person

STATES = [state.value for state in Escalation.State]
VERBS = ["claim", "release", "decide", "expire", "settle", "resume", "finish"]
HELD = {
    "call_index": 0, "action": "hold", "rule": "per_call", "version": 3, "measured": 600, "allowed": 500,
    "currency": "EUR", "sentence": "Too much.",
}  # fmt: skip
PHASES = ("before_answers", "after_answers")


def fail(conn: Any, *, escalation: dict[str, Any]) -> None:
    """A listener that is plugged in and breaks."""
    raise RuntimeError("the listener broke")


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi")}


def make(agent: Any, *, kind: str = "asked", requested_by: int | None = None, waits: bool = True, **more: Any) -> int:
    """Open an escalation of a thread of its own."""
    thread = uuid.uuid4()
    calls = {"calls": [{"tool": "ApplyCredit"}], "verdicts": [HELD]} if kind == "approval" else {}
    return lifecycle.open(
        agent,
        **{
            "kind": kind, "object": f"thread:{thread}", "payload": {"reason": "Why.", "phase": "after_answers"}, "thread": thread,
            "interrupt_id": thread.hex if waits else None, "requested_by": requested_by, **calls, **more,
        },
    )  # fmt: skip


def row(conn: Any, escalation: int, columns: str = "state") -> Any:
    found = conn.execute(f"SELECT {columns} FROM public.escalations_escalation WHERE id = %s", (escalation,)).fetchone()
    return found[0] if len(found) == 1 else found


def bring_to(state: str, *, agent: Any, web: Any, user: int) -> int:
    """Return an escalation in this state, by the verbs that lead there."""
    escalation = make(agent, waits=state != "done")
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
        "decide": lambda: lifecycle.decide(web, escalation=escalation, kind="answer", text="Yes.", user=user),
        "expire": lambda: lifecycle.expire(agent, escalation=escalation, text=""),
        "settle": lambda: lifecycle.settle(agent, object=about, text="It came right."),
        "resume": lambda: lifecycle.mark_resumed(agent, interrupt_ids=[interrupt]),
        "finish": lambda: lifecycle.mark_done(agent, thread=thread),
    }
    verbs[verb]()


@pytest.mark.parametrize("state", STATES)
def test_it_goes_where_the_table_says_and_nowhere_else(agent: Any, web: Any, people: Any, state: str) -> None:
    for verb in VERBS:
        escalation = bring_to(state, agent=agent, web=web, user=people["priya"])
        target = policies.target(state=state, verb=verb)
        if (state, verb) == ("decided", "finish"):
            target = None  # a thread waits for this one: it is resumed first
        refused = target is None and verb in ("claim", "decide", "expire")
        try:
            run(verb, escalation=escalation, agent=agent, web=web, user=people["priya"])
        except facts.AlreadyDecided as fact:
            assert refused, verb
            assert fact.name in ("priya", "the system")
        else:
            assert not refused, verb
        assert row(web, escalation) == (target or state), verb


@pytest.mark.parametrize("kind", [kind.value for kind in Escalation.Kind])
def test_it_takes_the_decisions_of_its_kind_only(agent: Any, web: Any, people: Any, kind: str) -> None:
    for decision, phase in product(("approve", "reject", "answer", "retry", "close"), PHASES):
        escalation = make(agent, kind=kind, requested_by=people["nina"], payload={"reason": "Why.", "phase": phase})
        allowed = decision in policies.DECISIONS[kind]
        if kind == "infrastructure" and decision == "answer":
            allowed = phase == "after_answers"
        try:
            lifecycle.decide(web, escalation=escalation, kind=decision, text="Because.", user=people["priya"])
        except facts.NotAllowed:
            assert not allowed, (decision, phase)
            assert row(web, escalation) == "open"
        else:
            assert allowed, (decision, phase)
            assert row(web, escalation) == "decided"


# -- opening -----------------------------------------------------------------------------------


def test_it_is_opened_once_for_an_interrupt(agent: Any, web: Any) -> None:
    thread = uuid.uuid4()
    same = {"kind": "asked", "object": f"thread:{thread}", "payload": {"reason": "Why."}, "thread": thread, "interrupt_id": "i-1"}
    assert lifecycle.open(agent, **same) == lifecycle.open(agent, **same)
    lifecycle.expire(agent, escalation=1, text="")
    assert lifecycle.open(agent, **same) == 1


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
        opened, due = row(web, make(agent, kind=kind), "opened_at, due_at")
        assert (due - opened).total_seconds() == 60 * policies.TARGETS[kind]


# -- claims ------------------------------------------------------------------------------------


def test_a_claim_holds_others_off(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    lifecycle.claim(web, escalation=escalation, user=people["priya"])  # renewed
    for refused in (
        lambda: lifecycle.claim(web, escalation=escalation, user=people["ravi"]),
        lambda: lifecycle.decide(web, escalation=escalation, kind="answer", text="No.", user=people["ravi"]),
    ):
        with pytest.raises(facts.HeldByAnother, match="priya"):
            refused()
    lifecycle.release(web, escalation=escalation, user=people["ravi"])  # not theirs to give back
    assert row(web, escalation, "claimed_by") == people["priya"]


def test_a_claim_lasts_a_quarter_of_an_hour(agent: Any, web: Any, owner: Any, people: Any) -> None:
    escalation = make(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    assert row(web, escalation, "claimed_until - now() BETWEEN interval '14 min' AND interval '15 min'")
    owner.execute("UPDATE public.escalations_escalation SET claimed_until = now() - interval '1 second'")
    lifecycle.claim(web, escalation=escalation, user=people["ravi"])
    assert row(web, escalation, "claimed_by") == people["ravi"]


def test_a_claim_can_be_taken_over(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    lifecycle.claim(web, escalation=escalation, user=people["ravi"], take_over=True)
    with pytest.raises(facts.HeldByAnother, match="ravi"):
        lifecycle.decide(web, escalation=escalation, kind="answer", text="No.", user=people["priya"])


def test_the_next_one_goes_to_one_reviewer(agent: Any, connect: Callable[[str], Any], people: Any) -> None:
    opened = {make(agent) for _ in range(6)}
    mine = make(agent, requested_by=people["priya"])
    desks = [connect("web") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda conn: lifecycle.claim_next(conn, user=people["priya"]), desks))
    taken = [escalation for escalation in found if escalation]
    assert len(taken) == len(set(taken))
    assert set(taken) <= opened
    assert mine not in taken


# -- deciding ----------------------------------------------------------------------------------


def test_twenty_decisions_at_once_have_one_winner(agent: Any, web: Any, people: Any) -> None:
    escalation, barrier = make(agent, kind="approval", requested_by=people["nina"]), Barrier(20)
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="web")

    def decide(number: int) -> str:
        user = people["priya" if number % 2 else "ravi"]
        with psycopg.connect(address, autocommit=True) as conn:
            barrier.wait(20)
            try:
                kind = "approve" if number % 3 else "reject"
                return lifecycle.decide(conn, escalation=escalation, kind=kind, text="Because.", user=user).name
            except facts.AlreadyDecided as fact:
                return f"lost to {fact.name}"

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(decide, range(20)))
    winners = [name for name in found if not name.startswith("lost")]
    assert len(winners) == 1
    assert {name for name in found if name.startswith("lost")} == {f"lost to {winners[0]}"}
    assert web.execute("SELECT count(*) FROM public.escalations_decision").fetchone() == (1,)
    assert web.execute("SELECT count(*) <= 1 FROM public.escalations_signature").fetchone() == (True,)


def test_an_approval_is_signed_and_waives_what_was_shown(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent, kind="approval", requested_by=people["nina"])
    decision = lifecycle.decide(web, escalation=escalation, kind="approve", text="", user=people["priya"])
    assert decision.waived == [{"call_index": 0, "rule": "per_call", "measured": 600}]
    signed = web.execute(
        "SELECT s.reviewer, s.requested_by, s.revision_id = d.revision_id FROM public.escalations_signature s"
        " JOIN public.escalations_decision d USING (escalation_id)"
    ).fetchall()
    assert signed == [(people["priya"], people["nina"], True)]


def test_an_approval_of_another_revision_is_refused(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent, kind="approval")
    with pytest.raises(facts.Outdated):
        lifecycle.decide(web, escalation=escalation, kind="approve", text="", user=people["priya"], revision=1)
    assert row(web, escalation) == "open"


def test_nobody_approves_their_own_request_but_may_reject_it(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent, kind="approval", requested_by=people["nina"])
    with pytest.raises(facts.OwnRequest):
        lifecycle.decide(web, escalation=escalation, kind="approve", text="", user=people["nina"])
    lifecycle.decide(web, escalation=escalation, kind="reject", text="A mistake of mine.", user=people["nina"])


@pytest.mark.parametrize(("state", "asked"), [("taken", True), ("cancelled", False), ("queued", False)])
def test_whoever_wrote_to_the_agent_does_not_approve_what_came_of_it(
    agent: Any, web: Any, owner: Any, people: Any, state: str, asked: bool
) -> None:
    escalation = make(agent, kind="approval", requested_by=people["nina"])
    owner.execute(
        "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state)"
        " SELECT gen_random_uuid(), thread, 1, %s, 'Invoice it', %s FROM public.escalations_escalation WHERE id = %s",
        (people["priya"], state, escalation),
    )
    found = Escalation.objects.get(pk=escalation)
    priya = person("priya", "reviewer")
    assert permissions.user_can_approve(priya, found) == (not asked)
    if asked:
        with pytest.raises(facts.OwnRequest):
            lifecycle.decide(web, escalation=escalation, kind="approve", text="", user=people["priya"])
    else:
        lifecycle.decide(web, escalation=escalation, kind="approve", text="", user=people["priya"])


@pytest.mark.parametrize("claimed_requester", ["nina", None])
def test_the_database_refuses_a_self_approval_too(agent: Any, web: Any, people: Any, claimed_requester: str | None) -> None:
    escalation = make(agent, kind="approval", requested_by=people["nina"])
    said = people[claimed_requester] if claimed_requester else None
    signature = (
        "INSERT INTO public.escalations_signature (escalation_id, revision_id, reviewer, requested_by)"
        " SELECT escalation_id, id, %s, %s FROM public.escalations_revision WHERE escalation_id = %s"
    )
    decision = (
        "INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by, requested_by)"
        " SELECT %3$s, 'approve', '', '[]', %1$s, %2$s"
    ).replace("%3$s", "%s")
    with pytest.raises(errors.CheckViolation, match="escalations_signature_four_eyes"):
        web.execute(signature, (people["nina"], said, escalation))
    with pytest.raises(errors.CheckViolation, match="escalations_decision_four_eyes"):
        web.execute(decision.replace("%1$s", "%s").replace("%2$s", "%s"), (escalation, people["nina"], said))


@pytest.mark.parametrize(("kind", "decision"), [("approval", "reject"), ("asked", "answer")])
def test_it_asks_for_words(agent: Any, web: Any, people: Any, kind: str, decision: str) -> None:
    escalation = make(agent, kind=kind)
    with pytest.raises(facts.TextMissing):
        lifecycle.decide(web, escalation=escalation, kind=decision, text="  ", user=people["priya"])


def test_an_unknown_escalation_is_said_to_be_unknown(web: Any, people: Any) -> None:
    with pytest.raises(facts.NotFound, match="E-404"):
        lifecycle.decide(web, escalation=404, kind="close", text="", user=people["priya"])


def test_decision_and_event_are_one_commit(agent: Any, web: Any, people: Any, settings: Any) -> None:
    escalation = make(agent)
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
    escalation, undecided = make(agent), make(agent)
    interrupts = [row(web, one, "interrupt_id") for one in (escalation, undecided)]
    decision = lifecycle.decide(web, escalation=escalation, kind="answer", text=" The blue one. ", user=people["priya"])
    found = lifecycle.decisions_for(agent, interrupt_ids=interrupts)
    assert found == {interrupts[0]: decision.as_resume_value()}
    assert found[interrupts[0]] == {
        "decision": decision.id, "kind": "answer", "text": "The blue one.",
        "decided_by": people["priya"], "name": "priya", "waived": [],
    }  # fmt: skip


def test_an_expired_one_is_the_systems_decision(agent: Any, web: Any) -> None:
    escalation = make(agent)
    interrupt = row(web, escalation, "interrupt_id")
    lifecycle.expire(agent, escalation=escalation, text="Nobody decided for a day.")
    found = lifecycle.decisions_for(agent, interrupt_ids=[interrupt])[interrupt]
    assert (found["kind"], found["decided_by"], found["name"]) == ("expire", None, "the system")


def test_one_that_came_right_is_settled_once(agent: Any, web: Any, people: Any) -> None:
    escalation = make(agent, kind="infrastructure", object="stuck:x", waits=False)
    lifecycle.claim(web, escalation=escalation, user=people["nina"])
    decision = lifecycle.settle(agent, object="stuck:x", text="It came right.")
    assert decision
    assert (decision.kind, decision.decided_by, decision.name) == ("settle", None, "the system")
    assert lifecycle.settle(agent, object="stuck:x", text="Again.") is None
    with pytest.raises(facts.AlreadyDecided, match="by the system"):
        lifecycle.decide(web, escalation=escalation, kind="close", text="", user=people["nina"])


def test_the_verbs_work_on_djangos_own_connection(agent: Any, web: Any, people: Any) -> None:
    from escalations import desk

    escalation = make(agent, kind="approval", requested_by=people["nina"])
    desk.claim(escalation=escalation, user=people["priya"])
    decision = desk.decide(escalation=escalation, kind="approve", text="", user=people["priya"], revision=0)
    assert decision.waived == [{"call_index": 0, "rule": "per_call", "measured": 600}]
    assert row(web, escalation) == "decided"
