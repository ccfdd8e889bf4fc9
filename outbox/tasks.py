"""Doorbells of the outbox worker. The rows are the work: a lost, doubled or late task changes nothing but latency."""

import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

from ledger import connections
from outbox import asides, bell, breakers, crews, leases, requests, webhooks

BUDGET_SECONDS = 20.0  # of a look at requests or events, after which it takes up nothing more
PULSE_SECONDS = 5.0  # a worker looks by itself as often: without a bell, without a clock, without a broker
LONGEST = 25.0  # seconds; more than the login's own limit (config/logins.py), which comes first where the server has one
STOPPING = threading.Event()
log = structlog.get_logger()


@shared_task(name="outbox.deliver")
def deliver() -> None:
    """Take over from lost workers, and send what is due. Beside it: what people asked for, and events."""
    pool = connections.pool()
    with pool.connection() as conn:
        if not connections.can_limit(conn):
            connections.end_overlong(conn, seconds=LONGEST)
        for message, state in leases.rescue(conn):
            log.warning("outbox.message.rescued", message=message, state=state)
        for message in leases.unblock(conn):
            log.info("outbox.message.unblocked", message=message)
        breakers.resume(conn)
    REQUESTS.ring()
    EVENTS.ring()
    crews.crew().work(pool, go_on=lambda: not STOPPING.is_set(), wake=lambda: bell.ring("outbox.deliver"))


@shared_task(name="outbox.process_webhooks")
def process_webhooks() -> None:
    """Process the events that the provider has sent."""
    EVENTS.ring()


def _carry_out() -> None:
    """Do what people ask for; a message that was put back is due at once."""
    with connections.pool().connection() as conn:
        done = requests.carry_out(conn, go_on=until(BUDGET_SECONDS))
    if done:
        bell.ring("outbox.deliver")


def _process() -> None:
    webhooks.process_due(connections.pool(), go_on=until(BUDGET_SECONDS))


# Both may ask the provider about each, which takes half a minute if it does not answer.
REQUESTS = asides.Aside(_carry_out, name="requests")
EVENTS = asides.Aside(_process, name="events", most=4)


def until(seconds: float) -> Callable[[], bool]:
    """Return a question: may this task take up something more?"""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end and not STOPPING.is_set()


@worker_ready.connect
def begin(**kwargs: Any) -> None:
    """Let the outbox's worker look by itself, too."""
    if settings.LOGIN == "outbox":
        threading.Thread(target=_look_now_and_then, name="outbox-pulse", daemon=True).start()


def _look_now_and_then() -> None:
    while not STOPPING.wait(PULSE_SECONDS):
        try:
            deliver()
        except connections.AWAY as error:
            log.warning("outbox.pulse.missed", error=type(error).__name__)
        except Exception:
            log.exception("outbox.pulse.failed")


@worker_shutting_down.connect
def stop(**kwargs: Any) -> None:
    """Take up nothing more in this worker; what it has in hand it finishes."""
    STOPPING.set()
