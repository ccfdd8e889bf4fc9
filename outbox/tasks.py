"""Doorbells of the outbox worker. The rows are the work: a lost, doubled or late task changes nothing but latency."""

import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_shutting_down

from ledger import connections
from outbox import bell, leases, relay, requests, webhooks

BUDGET_SECONDS = 20.0  # a task that goes on for ever would hold up the worker's end
LONGEST = 25.0  # seconds; more than the login's own limit (config/logins.py), which comes first where the server has one
STOPPING = threading.Event()
log = structlog.get_logger()


@shared_task(name="outbox.deliver")
def deliver() -> None:
    """Take over from lost workers, do what people asked for, process events, then send what is due."""
    pool, go_on = connections.pool(), until(BUDGET_SECONDS)
    with pool.connection() as conn:
        if not connections.can_limit(conn):
            connections.end_overlong(conn, seconds=LONGEST)
        for message, state in leases.rescue(conn):
            log.warning("outbox.message.rescued", message=message, state=state)
        if requests.carry_out(conn, go_on=go_on):
            bell.ring("outbox.reconcile")  # what was decided about a disagreement is done: is it gone?
    webhooks.process_due(pool, go_on=go_on)
    if relay.drain(pool, go_on=go_on, wake=lambda: bell.ring("outbox.deliver")):
        bell.ring("outbox.deliver")


@shared_task(name="outbox.process_webhooks")
def process_webhooks() -> None:
    """Process the events that the provider has sent."""
    webhooks.process_due(connections.pool(), go_on=until(BUDGET_SECONDS))


def until(seconds: float) -> Callable[[], bool]:
    """Return a question: may this task take up something more?"""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end and not STOPPING.is_set()


@worker_shutting_down.connect
def stop(**kwargs: Any) -> None:
    """Take up nothing more in this worker; what it has in hand it finishes."""
    STOPPING.set()
