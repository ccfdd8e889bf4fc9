"""A run and what happens beside it: other workers, heartbeats, stops, shutdowns, drafts."""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.runtime import RunControl

from agent import drafts, events, heartbeats, leases, llm
from agent.leases import Lease
from agent.runs import ActiveRuns, Run
from tests import faults
from tests.agent.scripts import calls, model, says
from tests.agent.talks import Talk
from tests.waiting import until


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Start the work in a thread, and return the thread and the list that its result goes to."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    return thread, found


class Gate:
    """A place where the model waits until the test lets it go on."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, messages: Any = None) -> dict[str, Any]:
        self.reached.set()
        assert self.open.wait(20)
        return says("Done.")


def run_of(talk: Talk, lease: Lease) -> Run:
    return Run(pool=talk.pool, lease=lease, subject=talk.customer, model=model(says("")), tools={})


def lease_of(talk: Talk) -> Lease:
    with talk.pool.connection() as conn:
        lease = leases.acquire(conn, thread=talk.thread)
    assert lease
    return lease


def invoice(talk: Talk) -> Any:
    return "CreateInvoice", {"customer_id": talk.customer, "billing_period": "2025-11-01", "amount_minor": 100, "currency": "EUR"}


def test_it_lets_one_of_two_drivers_run(talk: Talk) -> None:
    gate = Gate()
    talk.say("Hello")
    thread, found = in_background(lambda: talk.drive(gate))
    assert gate.reached.wait(20)
    assert talk.drive(says("never")) == "busy"
    gate.open.set()
    thread.join(20)
    assert found == ["idle"]
    assert talk.transcript() == [("human", "Hello"), ("ai", "Done.")]


def test_it_answers_a_message_that_came_while_it_worked(talk: Talk) -> None:
    gate = Gate()
    talk.say("Hello")
    thread, _ = in_background(lambda: talk.drive(gate))
    assert gate.reached.wait(20)
    talk.say("And this")
    gate.open.set()
    thread.join(20)
    assert [text for _, text in talk.transcript()] == ["Hello", "Done.", "And this", "Done."]


def test_it_looks_again_after_giving_the_lease_back(talk: Talk, connect: Any) -> None:
    other = connect("owner")
    talk.say("What now?")
    asks = calls(("AskHuman", {"customer_id": talk.customer, "question": "May I?"}))
    assert talk.drive(asks, says("never")) == "waiting"
    talk.decide("answer", "Yes.")

    def answer(messages: Any) -> dict[str, Any]:
        if messages[-1].text.startswith("A reviewer answers"):
            faults.hold(other, "SELECT FROM public.escalations_escalation FOR UPDATE")
        return says(f"re {messages[-1].text}")

    thread, found = in_background(lambda: talk.drive(asks, answer))
    until(lambda: faults.waits(talk.owner), what="a drive that found no message and waits to close its question")
    talk.say("Just now")
    faults.let_go(other)
    thread.join(20)
    assert found == ["idle"]
    assert [text for _, text in talk.transcript()][-4:] == [
        "A reviewer answers: Yes.", "re A reviewer answers: Yes.", "Just now", "re Just now",
    ]  # fmt: skip


def test_it_ends_without_a_trace_when_another_worker_took_over(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    talk.say("Invoice")
    thread, found = in_background(lambda: talk.drive(lambda messages: gate(messages) and calls(invoice(talk))))
    assert gate.reached.wait(20)
    talk.expire()
    assert talk.drive(says("Mine.")) == "idle"
    gate.open.set()
    with caplog.at_level(logging.CRITICAL):
        thread.join(20)
    assert found == ["left"]
    assert talk.transcript() == [("human", "Invoice"), ("ai", "Mine.")]
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
    assert talk.state() == "idle"


def test_it_keeps_a_lease_alive_and_skips_what_its_own_batch_locks(
    talk: Talk, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HEARTBEAT_SECONDS = 0
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    lease = lease_of(talk)
    run = run_of(talk, lease)
    until_when = "SELECT leased_until FROM public.agent_thread"
    with heartbeats.of(talk.pool).watch(run):
        first = talk.one(until_when)
        until(lambda: talk.one(until_when) > first, what="a renewal")
        with talk.pool.connection() as conn, conn.transaction():
            leases.check(conn, lease)
            locked = talk.one(until_when)
            until(lambda: not run.lost.wait(0.2), what="some looks at a locked row")
            assert talk.one(until_when) == locked
        until(lambda: talk.one(until_when) > locked, what="a renewal after the batch")
    assert not run.lost.is_set()


def test_it_notices_that_a_lease_was_lost_and_that_staff_want_a_stop(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    run = run_of(talk, lease_of(talk))
    with heartbeats.of(talk.pool).watch(run):
        talk.web.execute("UPDATE public.agent_thread SET stop_requested_at = now(), stop_requested_by = 7")
        assert run.stop.wait(10)
        talk.expire()
        lease_of(talk)
        assert run.lost.wait(10)
    assert run.control.drain_requested


def test_it_survives_a_heartbeat_without_a_database(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    run, heartbeat = run_of(talk, lease_of(talk)), heartbeats.Heartbeat(talk.pool)
    with heartbeat.watch(run):
        conn = until(lambda: heartbeat._conn, what="the heartbeat's connection")
        talk.owner.execute("SELECT 1")
        conn.close()
        until(lambda: heartbeat._conn not in (None, conn), what="a new connection")
    assert not run.lost.is_set()


def test_it_renews_no_lease_that_was_given_back_meanwhile(talk: Talk) -> None:
    run = run_of(talk, lease_of(talk))
    with talk.pool.connection() as conn:
        leases.release(conn, run.lease, state="idle")
        heartbeats.Heartbeat(talk.pool)._renew(conn, [run])  # it was due as the run ended
    assert talk.rows("SELECT lease_owner, leased_until FROM public.agent_thread") == [(None, None)]


def test_it_renews_the_others_while_one_s_batch_holds_its_thread(talk: Talk, connect: Any) -> None:
    """One heartbeat beats for all runs of a process: it must not wait for the batch of one of them."""
    other = Talk(pool=talk.pool, owner=talk.owner, web=talk.web, customer=talk.customer)
    held, free = (run_of(one, lease_of(one)) for one in (talk, other))
    talk.owner.execute("UPDATE public.agent_thread SET leased_until = now() + interval '5 seconds'")
    batch, beating = connect("agent"), connect("agent")
    beating.execute("SET lock_timeout = '1s'")
    faults.hold(batch, f"SELECT public.agent_fence('{held.thread}', {held.lease.fence})")
    heartbeats.Heartbeat(talk.pool)._renew(beating, [held, free])
    faults.let_go(batch)
    renewed = "SELECT thread FROM public.agent_thread WHERE leased_until > now() + interval '6 seconds'"
    assert talk.rows(renewed) == [(free.thread,)]


PRESS = "UPDATE public.agent_thread SET stop_requested_at = now(), stop_requested_by = 7"


def noticed(talk: Talk) -> bool:
    """Say whether the run of the talk was told of a press on Stop, or wait for it."""
    [run] = [run for run, _ in heartbeats.of(talk.pool)._runs.values()]
    return run.stop.wait(10)


@pytest.fixture
def stop(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what a press on Stop does, noticed at once."""
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)

    def press() -> None:
        talk.web.execute(PRESS)
        assert noticed(talk)

    return press


def test_it_stops_in_the_middle_of_an_answer(talk: Talk, stop: Callable[[], None]) -> None:
    talk.say("Tell me everything")
    pauses = iter([stop])
    reply = says("One. Two. Three. Four. Five. Six. Seven.") | {"pause": lambda: next(pauses, lambda: None)()}
    assert talk.drive(lambda messages: reply) == "idle"
    said, _, last = talk.transcript()[-1][1].partition("\n\n")
    assert last == "Stopped by Support 7."
    assert 0 < len(said) < len(reply["text"])
    assert talk.one("SELECT stop_requested_at FROM public.agent_thread") is None
    talk.say("Next")
    assert talk.drive(says("Gladly.")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Gladly.")


def test_it_stops_before_a_step_and_answers_its_calls(talk: Talk, connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    staff, other = connect("web"), connect("owner")

    def answer(messages: Any) -> dict[str, Any]:
        faults.hold(staff, PRESS)  # nobody sees it before it is committed
        faults.hold(other, "LOCK TABLE public.checkpoints, public.checkpoint_writes IN SHARE MODE")
        return calls(invoice(talk))

    talk.say("Invoice")
    thread, found = in_background(lambda: talk.drive(answer, says("never")))
    until(lambda: faults.waits(talk.owner), what="an answer that is to be remembered, after the agent node's last look")
    faults.let_go(staff)
    assert noticed(talk)
    faults.let_go(other)
    thread.join(20)
    assert found == ["idle"]
    assert [role for role, _ in talk.transcript()] == ["human", "ai", "tool", "ai"]
    assert talk.transcript()[2][1].startswith("REJECTED: Stopped by Support 7. Nothing of this step was saved.")
    assert talk.transcript()[-1][1] == "Stopped by Support 7."
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0


def test_it_goes_on_with_the_queue_after_a_stop(talk: Talk, stop: Callable[[], None]) -> None:
    talk.say("One")
    talk.say("Two")
    pauses = iter([stop])
    reply = says("A long answer to one.") | {"pause": lambda: next(pauses, lambda: None)()}
    assert talk.drive(lambda messages: reply if messages[-1].text == "One" else says("Two it is.")) == "idle"
    one, stopped, two, answer = [text for _, text in talk.transcript()]
    assert (one, two, answer) == ("One", "Two", "Two it is.")
    assert stopped.endswith("Stopped by Support 7.")


def test_it_gives_up_an_answer_at_shutdown_and_another_worker_writes_it(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    active = ActiveRuns()
    monkeypatch.setattr("agent.driver.ACTIVE", active)
    talk.say("Hello")
    reply = says("One. Two. Three.") | {"pause": active.drain}
    assert talk.drive(lambda messages: reply) == "left"
    assert talk.transcript() == [("human", "Hello")]
    assert talk.one("SELECT leased_until IS NULL AND next_sweep_at <= now() AND sweeps = 1 FROM public.agent_thread") is True
    monkeypatch.setattr("agent.driver.ACTIVE", ActiveRuns())
    assert talk.drive(says("Hi.")) == "idle"
    assert talk.transcript() == [("human", "Hello"), ("ai", "Hi.")]


def test_it_asks_a_run_that_begins_during_a_shutdown_to_end() -> None:
    active, control = ActiveRuns(), RunControl()
    assert active.drain() == 0
    active.add(type("R", (), {"control": control})())
    assert control.drain_requested


def test_it_keeps_the_draft_for_whoever_joins(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(drafts, "PUBLISH_EVERY", 0.0)
    seen: list[Any] = []
    heard: list[str] = []
    talk.say("Hello")
    reply = says("One. Two. Three.") | {"pause": lambda: seen.extend(talk.rows("SELECT text FROM public.agent_draft"))}
    channel = events.channel(talk.thread)
    with events.broker().pubsub(ignore_subscribe_messages=True) as ears:
        ears.subscribe(channel)
        until(lambda: events.broker().pubsub_numsub(channel)[0][1], what="a subscriber")
        talk.drive(lambda messages: reply)
        until(lambda: "One. Two. Three." in heard or hear(ears, heard), what="the whole draft")
    assert [row[0] for row in seen] == ["One. Tw", "One. Two. Thre", "One. Two. Three."]
    assert [text for text in heard if text.startswith("One")] == ["One. Tw", "One. Two. Thre", "One. Two. Three."]
    assert talk.rows("SELECT text FROM public.agent_draft") == []


def hear(ears: Any, heard: list[str]) -> None:
    """Add what the next message says of a draft."""
    if message := ears.get_message(timeout=0.1):
        said = json.loads(message["data"])
        heard.extend([said["text"]] if said["kind"] == "draft" else [])


def test_it_takes_a_draft_back_when_the_answer_fails(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "SAVE_EVERY", 0.0)

    def fail() -> None:
        raise TimeoutError("the provider went silent")

    talk.say("Hello")
    assert talk.drive(lambda messages: says("One. Two.") | {"pause": fail}) == "waiting"
    assert talk.rows("SELECT text FROM public.agent_draft") == []
    assert talk.transcript() == [("human", "Hello")]


def test_it_does_not_overwrite_the_draft_of_a_newer_run(talk: Talk) -> None:
    old = lease_of(talk)
    talk.expire()
    new = lease_of(talk)
    drafts.Draft(pool=talk.pool, lease=new).add("new")
    drafts.Draft(pool=talk.pool, lease=old).add("old")
    drafts.Draft(pool=talk.pool, lease=old).drop()
    assert talk.rows("SELECT text FROM public.agent_draft") == [("new",)]


def test_it_leaves_no_draft_when_the_newer_run_is_done(talk: Talk) -> None:
    old = lease_of(talk)
    talk.expire()
    lease_of(talk)
    drafts.Draft(pool=talk.pool, lease=old).add("old")
    assert talk.rows("SELECT text FROM public.agent_draft") == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (type("RateLimitError", (Exception,), {"status_code": 429})(), llm.Unavailable),
        (type("InternalServerError", (Exception,), {"status_code": 500})(), llm.Unavailable),
        (type("BadRequestError", (Exception,), {"status_code": 400})(), llm.Unusable),
        (type("AuthenticationError", (Exception,), {"status_code": 401})(), llm.Unusable),
        (type("APIConnectionError", (Exception,), {})(), llm.Unavailable),
        (TimeoutError(), llm.Unavailable),
        (ConnectionResetError(), llm.Unavailable),
        (ValueError("secret"), llm.Unusable),
    ],
)
def test_it_knows_what_a_failure_of_the_model_means(error: Exception, kind: type[Exception]) -> None:
    found = llm._meaning(error)
    assert type(found) is kind
    assert "secret" not in str(found)


def test_it_tries_an_unreachable_model_again(talk: Talk) -> None:
    tries: list[int] = []

    def flaky(messages: Any) -> dict[str, Any]:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError
        return says("At last.")

    talk.say("Hello")
    assert talk.drive(flaky) == "idle"
    assert len(tries) == 3


def test_it_does_not_repeat_a_request_that_the_model_refused(talk: Talk) -> None:
    tries: list[int] = []

    def refuse(messages: Any) -> dict[str, Any]:
        tries.append(1)
        raise ValueError("too long")

    talk.say("Hello")
    assert talk.drive(refuse) == "waiting"
    assert len(tries) == 1
    assert "refused this conversation" in talk.one("SELECT payload->>'reason' FROM public.escalations_escalation")
    assert talk.one("SELECT count(*) FROM public.checkpoint_writes WHERE encode(blob, 'escape') LIKE '%%too long%%'") == 0
