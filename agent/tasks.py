"""Doorbells of the agent worker. The rows are the work: a lost, doubled or late task changes nothing but latency."""

from typing import Any
from uuid import UUID

import structlog
from celery import shared_task
from celery.signals import worker_shutting_down

from agent import driver, expiry, runs
from agent import sweep as sweeper
from escalations import notifications
from ledger import connections
from outbox import bell

log = structlog.get_logger()

LONGEST = 15.0  # seconds; more than the login's own limit (config/logins.py), which comes first where the server has one


@shared_task(name="agent.drive")
def drive(thread: str) -> None:
    """Bring a thread as far as it can go without a person."""
    driver.drive(UUID(thread))


@shared_task(name="agent.sweep")
def sweep() -> None:
    """Ring for every thread that needs a drive and has none."""
    with connections.pool().connection() as conn:
        if not connections.can_limit(conn):
            connections.end_overlong(conn, seconds=LONGEST)
        threads = sweeper.sweep(conn)
    for thread in threads:
        log.info("agent.thread.swept", thread=str(thread))
        bell.ring("agent.drive", str(thread))


@shared_task(name="agent.expire")
def expire() -> None:
    """Decide for want of a person what nobody decided in time."""
    with connections.pool().connection() as conn:
        threads = expiry.expire(conn)
    for thread in threads:
        log.info("agent.question.expired", thread=str(thread))
        bell.ring("agent.drive", str(thread))


@shared_task(name="agent.remind")
def remind() -> None:
    """Tell reviewers of the questions that are past their targets."""
    with connections.pool().connection() as conn:
        late = notifications.remind(conn)
    if late:
        log.info("agent.reviewers.reminded", escalations=late)
        bell.ring("outbox.deliver")


@worker_shutting_down.connect
def drain(**kwargs: Any) -> None:
    """End the runs of this worker at their next safe point; other workers go on with them."""
    log.info("agent.worker.asked_to_stop", runs=runs.ACTIVE.drain())
