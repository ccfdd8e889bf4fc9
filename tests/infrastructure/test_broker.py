"""The broker dies, forgets or rings twice; the clock stands still, or is the only one that rings; workers are told to end."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tests import databases, plugin
from tests.infrastructure import parts
from tests.infrastructure.desks import TOOLS, Desk, Talk
from tests.infrastructure.parts import LONG, Parts, Process
from tests.stack import open_folder
from tests.waiting import until

SLOW = "Create an invoice of €480.00 for November 2025 and charge it to the card [misbehave: slow]"
CONFIRM = "/v1/payment_intents/[^/]+/confirm"


def address(login: str) -> str:
    """Return the address of the test's database for a login."""
    return databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)


@pytest.fixture(scope="module")
def running(superuser: Any) -> Iterator[Parts]:
    """Run a broker and a provider; each test starts the workers and clocks that it needs."""
    databases.empty(superuser)
    with open_folder() as folder, parts.around(address, folder) as made:
        yield made


@pytest.fixture(scope="module")
def desk(running: Parts) -> Desk:
    """Return the books."""
    return Desk(address=address, provider=running.provider)


@pytest.fixture(scope="module")
def workers(running: Parts) -> tuple[Process, Process]:
    """Return an agent and an outbox worker that live through this file."""
    made = running.worker("agent"), running.worker("outbox")
    running.wait(*made)
    return made


@pytest.fixture
def clock(running: Parts) -> Iterator[Callable[[], Process]]:
    """Return a function that starts a clock; it is stopped with the test."""
    clocks: list[Process] = []

    def begin() -> Process:
        clocks.append(running.beat())
        return clocks[-1]

    yield begin
    for process in clocks:
        process.popen.kill()
        process.popen.wait(10)


def until_settled(*talks: Talk, seconds: float = LONG) -> None:
    until(lambda: all(talk.settled() for talk in talks), seconds=seconds, what="settled conversations")
    for talk in talks:
        talk.check()


def said(desk: Desk, *, count: int = 1, text: str = "") -> list[Talk]:
    """Begin conversations in which something was said and no bell rung."""
    talks = [desk.begin() for _ in range(count)]
    for talk in talks:
        talk.say(text) if text else talk.say()
    return talks


# -- bells and clocks --------------------------------------------------------------------------


def test_it_delivers_by_bells_alone(running: Parts, desk: Desk, workers: Any) -> None:
    [talk] = said(desk)
    running.ring("agent.drive", talk.thread)  # the rest is rung by the workers themselves
    until_settled(talk)


def test_it_delivers_by_the_clock_alone(desk: Desk, workers: Any, clock: Callable[[], Process]) -> None:
    beat = clock()
    until(beat.ready, seconds=LONG, what="a clock")
    talks = said(desk, count=2)
    until_settled(*talks, seconds=30)


def test_it_does_everything_once_under_two_clocks(running: Parts, desk: Desk, workers: Any, clock: Callable[[], Process]) -> None:
    beats = clock(), clock()
    running.wait(*beats)
    talks = said(desk, count=6)
    until_settled(*talks)
    assert [len(talk.messages()) for talk in talks] == [1] * 6


def test_it_runs_once_what_is_rung_for_in_two_workers_at_once(running: Parts, desk: Desk, workers: Any) -> None:
    second = running.worker("agent")
    running.wait(second)
    talks = said(desk, count=4)
    for talk in talks:
        running.ring("agent.drive", talk.thread, times=8)
    until_settled(*talks)
    until(lambda: running.queued("agent") == 0, what="heard bells")
    for talk in talks:  # a bell that comes again when all is done
        running.ring("agent.drive", talk.thread, times=2)
    until(lambda: running.queued("agent") == 0, what="heard bells")
    until_settled(*talks)
    second.send(signal.SIGTERM)
    assert second.popen.wait(20) == 0


# -- the broker --------------------------------------------------------------------------------


def kill_broker(running: Parts) -> None:
    """Kill the broker with everything in it."""
    pid = running.broker.pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not running.broker.ready(), what="a broker that is gone")


def lose_all(running: Parts) -> None:
    """Let the broker forget everything, its queues' names included."""
    with redis.Redis.from_url(running.broker.url()) as client:
        client.flushall()


@pytest.mark.parametrize("lose", [kill_broker, lose_all])
def test_it_finds_by_the_clock_what_the_broker_lost(
    running: Parts, desk: Desk, workers: tuple[Process, Process], clock: Callable[[], Process], lose: Callable[[Parts], None]
) -> None:
    beat = clock()
    until(beat.ready, seconds=LONG, what="a clock")
    for worker in workers:
        worker.send(signal.SIGSTOP)
    talks = said(desk, count=5)
    for talk in talks:
        running.ring("agent.drive", talk.thread)
    assert running.queued("agent") >= 4  # one may be in a worker's hand
    lose(running)
    if lose is kill_broker:
        running.broker.start()
    for worker in workers:
        worker.send(signal.SIGCONT)
    until_settled(*talks)
    [rung] = said(desk)
    running.ring("agent.drive", rung.thread)  # the same workers hear bells again
    until_settled(rung, seconds=30)
    assert all(process.alive() for process in (*workers, beat))


# -- workers that are told to end --------------------------------------------------------------


def test_it_ends_a_batch_and_hands_the_rest_over_when_it_is_told_to_end(running: Parts, desk: Desk, workers: Any) -> None:
    talk = desk.begin()
    leaving = running.worker("agent", BACKSTOP_FAULT=f"batch.write:1:sleep:{talk.thread}", BACKSTOP_FAULT_SECONDS="3")
    running.wait(leaving)
    workers[0].send(signal.SIGSTOP)  # so that the other one takes it
    talk.say()
    running.ring("agent.drive", talk.thread, times=2)
    until(lambda: leaving.events("ledger.fault.injected"), seconds=LONG, what="an open batch")
    leaving.send(signal.SIGTERM)
    assert leaving.popen.wait(20) == 0
    assert talk.applied() == TOOLS  # the batch came to its end
    assert talk.roles()[-1] == "tool"  # the run did not
    workers[0].send(signal.SIGCONT)
    running.ring("agent.sweep")
    until_settled(talk)


def test_it_finishes_the_charge_in_hand_when_the_outbox_worker_is_told_to_end(running: Parts, desk: Desk, workers: Any) -> None:
    leaving = running.worker("outbox")
    running.wait(leaving)
    workers[1].send(signal.SIGSTOP)
    running.provider.fault("during", "sleep", path=CONFIRM, seconds=2)
    [talk] = said(desk)
    running.ring("agent.drive", talk.thread)
    sending = "SELECT 1 FROM public.outbox_message WHERE thread = %s AND step = 1 AND sending_at IS NOT NULL"

    def in_the_middle() -> bool:
        running.ring("outbox.deliver")  # one bell may be in the hand of the worker that sleeps
        return bool(desk.rows(sending, talk.thread))

    until(in_the_middle, seconds=LONG, what="a charge that is being sent")
    leaving.send(signal.SIGTERM)
    assert leaving.popen.wait(20) == 0
    workers[1].send(signal.SIGCONT)
    until_settled(talk)
    sends = "SELECT sends, ever_unknown FROM public.outbox_message WHERE thread = %s"
    assert desk.rows(sends, talk.thread) == [(2, False)]  # one for each step: nobody had to look it up


def test_it_leaves_nothing_that_contradicts_the_invariants(desk: Desk) -> None:
    assert desk.broken() == []
