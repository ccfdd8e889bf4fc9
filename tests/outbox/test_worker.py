"""The Celery worker as it really runs: rung, or by beat alone."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from config import addresses
from outbox import requests
from sandbox.servers import valkey
from tests.forks import Program
from tests.outbox.desk import Desk
from tests.outbox.provider import API_KEY
from tests.waiting import until

WORKER = ["worker", "-P", "threads", "-c", "8", "-Q", "outbox", "--without-gossip", "--without-mingle", "-l", "WARNING"]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Run a broker of our own: the tests' own may be heard by others."""
    with tempfile.TemporaryDirectory(prefix="backstop-broker-") as folder:
        server = valkey.Server(data=Path(folder) / "valkey")
        server.start()
        yield server.url()
        server.stop()


@pytest.fixture
def start(desk: Desk, broker: str, outbox_address: str, tmp_path: Path) -> Iterator[Any]:
    """Return a function that starts `celery …` as the outbox login."""
    environment = os.environ | {
        "DATABASE_URL": outbox_address,
        "REDIS_URL": broker,
        "BACKSTOP_LOGIN": "outbox",
        "BACKSTOP_DATA": str(tmp_path),
        "STRIPE_API_KEY": API_KEY,
        "STRIPE_API_BASE": desk.provider.base,
    }
    with ExitStack() as started:

        def celery(*words: str) -> None:
            process = Program("celery", "-A", "config.celery", *words, env=environment)
            started.callback(process.wait, 20)
            started.callback(process.terminate)

        yield celery


@pytest.fixture
def ring(broker: str) -> Any:
    """Return a function that rings for the outbox worker."""
    app = Celery(broker=addresses.broker(broker), set_as_current=False)
    return lambda: app.send_task("outbox.deliver", queue="outbox", ignore_result=True)


def settled(desk: Desk, messages: list[dict[str, Any]]) -> bool:
    return all(desk.read(message)["state"] == "succeeded" for message in messages)


def test_it_delivers_at_once_when_it_is_rung(desk: Desk, start: Any, ring: Any) -> None:
    start(*WORKER)
    warm = desk.charge()
    ring()
    until(lambda: settled(desk, [warm]), seconds=30)

    messages = [desk.charge() for _ in range(12)]
    ring()
    began = time.monotonic()
    until(lambda: settled(desk, messages), seconds=10)

    assert time.monotonic() - began < 5
    owners = {row[0] for row in desk.owner.execute("SELECT DISTINCT lease_token FROM public.outbox_delivery").fetchall()}
    assert len(owners) == 13
    assert [desk.provider.movements(message["uid"]) for message in messages] == [[48_000]] * 12


def test_a_provider_that_is_silent_about_a_request_keeps_no_delivery_waiting(desk: Desk, start: Any, ring: Any) -> None:
    start(*WORKER)
    asked = desk.charge()
    ring()
    until(lambda: settled(desk, [asked]), seconds=30)
    desk.provider.fault("before", "sleep", method="GET", path="/v1/payment_intents/[^/]+", seconds=3)
    with desk.owner.transaction():
        requests.ask(desk.owner, message=asked["id"], kind="look_up", reason="To be sure.", user=1)
    ring()

    message = desk.charge()
    ring()
    until(lambda: settled(desk, [message]), seconds=10)

    answered = "SELECT count(*) FROM public.outbox_request WHERE carried_out_at IS NOT NULL"
    assert desk.one(answered)["count"] == 0
    until(lambda: desk.one(answered)["count"] == 1, seconds=10)


def test_it_delivers_without_bell_clock_and_broker(desk: Desk, start: Any, ring: Any) -> None:
    start(*WORKER)
    warm = desk.charge()
    ring()
    until(lambda: settled(desk, [warm]), seconds=30)

    message = desk.charge()
    until(lambda: settled(desk, [message]), seconds=10)


def test_it_delivers_by_beat_alone(desk: Desk, start: Any) -> None:
    start(*WORKER)
    start("beat", "--pidfile=", "-l", "WARNING")
    warm = desk.charge()
    until(lambda: settled(desk, [warm]), seconds=40)

    message = desk.charge()
    until(lambda: settled(desk, [message]), seconds=10)
