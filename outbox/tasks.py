"""Doorbells of the outbox worker. The rows are the work: a lost, doubled or late task changes nothing but latency."""

from celery import shared_task

from ledger import connections
from outbox import bell, leases, relay, requests, webhooks

BUDGET_SECONDS = 20.0  # far below a minute, so that a worker can stop in time


@shared_task(name="outbox.deliver")
def deliver() -> None:
    """Take over from lost workers, do what people asked for, process events, then send what is due."""
    pool = connections.pool()
    with pool.connection() as conn:
        for message, state in leases.rescue(conn):
            relay.log.warning("outbox.message.rescued", message=message, state=state)
        requests.carry_out(conn)
    webhooks.process_due(pool, seconds=BUDGET_SECONDS)
    if relay.drain(pool, seconds=BUDGET_SECONDS, wake=lambda: bell.ring("outbox.deliver")):
        bell.ring("outbox.deliver")


@shared_task(name="outbox.process_webhooks")
def process_webhooks() -> None:
    """Process the events that the provider has sent."""
    webhooks.process_due(connections.pool(), seconds=BUDGET_SECONDS)
