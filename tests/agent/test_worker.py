"""The agent worker as it really runs: Celery with a pool of threads, rung by the broker, ended by signals."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings

from tests import databases, plugin, servers
from tests.agent.scripts import says
from tests.agent.talks import Talk
from tests.forks import Program
from tests.waiting import until

# a database of its own, which the pages that this process tests don't ring
BROKER = servers.numbered(address=settings.REDIS_URL, number=8 + servers.process())
SLOW = "Create an invoice of €480.00 for November 2025 [misbehave: slow]"


@contextmanager
def worker(talk: Talk, **more: str) -> Iterator[Program]:
    """Run an agent worker with the offline model; kill it afterwards."""
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
    environment = os.environ | {"DATABASE_URL": address, "BACKSTOP_LOGIN": "agent", "REDIS_URL": BROKER, **more}
    options = "-A config.celery worker -P threads -c 4 -Q agent --without-gossip --without-mingle --without-heartbeat -l WARNING"
    process = Program("celery", *options.split(), env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture
def start(talk: Talk) -> Iterator[Callable[..., Program]]:
    """Return a function that starts a worker."""
    with ExitStack() as stack:
        redis.Redis.from_url(BROKER).flushdb()
        yield lambda **more: stack.enter_context(worker(talk, **more))


def ring(task: str, *arguments: str) -> None:
    address = BROKER.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
    with Celery(broker=address, set_as_current=False) as app:  # else this process rings there for ever
        app.send_task(task, args=arguments, queue="agent")


def writes(talk: Talk) -> bool:
    """Return whether the agent is in the middle of an answer."""
    return bool(talk.rows("SELECT 1 FROM public.agent_draft WHERE thread = %s", talk.thread))


def ended(talk: Talk) -> bool:
    return talk.rows("SELECT state FROM public.agent_thread WHERE thread = %s", talk.thread) == [("idle",)]


def test_it_drives_what_it_is_rung_for(talk: Talk, start: Any) -> None:
    start()
    talk.say(SLOW.partition(" [")[0])
    ring("agent.drive", str(talk.thread))
    until(lambda: ended(talk), seconds=40)
    assert talk.rows("SELECT amount_minor FROM public.billing_invoice") == [(48_000,)]
    assert talk.transcript()[-1][0] == "ai"


def test_it_finds_by_sweeping_what_no_bell_told(talk: Talk, start: Any) -> None:
    start()
    talk.say("Hello")
    ring("agent.sweep")
    until(lambda: ended(talk), seconds=40)
    assert talk.transcript()[0] == ("human", "Hello")


def test_it_hands_its_runs_over_when_it_is_told_to_end(talk: Talk, start: Any) -> None:
    process = start()
    talk.say(SLOW)
    ring("agent.drive", str(talk.thread))
    until(lambda: writes(talk), seconds=40, what="a draft")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    left = "SELECT state, leased_until IS NULL, next_sweep_at <= now() FROM public.agent_thread"
    assert talk.rows(left) == [("running", True, True)]
    assert talk.drive(says("Another worker here.")) == "idle"
    assert not writes(talk)


def test_it_is_replaced_when_it_is_killed(talk: Talk, start: Any) -> None:
    process = start()
    talk.say(SLOW)
    ring("agent.drive", str(talk.thread))
    until(lambda: writes(talk), seconds=40, what="a draft")
    process.kill()
    process.wait(10)
    assert talk.drive(says("never")) == "busy"
    talk.expire()
    start()
    ring("agent.sweep")
    until(lambda: ended(talk), seconds=60)
    assert talk.rows("SELECT amount_minor FROM public.billing_invoice") == [(48_000,)]


def test_it_refuses_to_start_with_a_lease_that_is_too_short(talk: Talk, start: Any) -> None:
    assert start(BACKSTOP_LEASE_SECONDS="12").wait(40) == 1
