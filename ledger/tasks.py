"""Doorbells of the keeper worker."""

import time
from datetime import timedelta

import structlog
from celery import shared_task
from django.conf import settings
from django.utils import timezone

from ledger import connections, partitions, wiring

BUDGET_SECONDS = 20.0  # then a new task goes on with the pruning: the keeper has other work
log = structlog.get_logger()


@shared_task(name="ledger.make_partitions")
def make_partitions() -> None:
    """Make the partitions of the coming months."""
    with connections.pool().connection() as conn:
        if made := partitions.make(conn):
            log.info("ledger.partitions.made", number=made)


@shared_task(name="ledger.prune")
def prune(after: int = 0) -> None:
    """Let what is older than BACKSTOP_KEEP_DAYS go, from row `after` on."""
    before, end = timezone.now() - timedelta(days=settings.BACKSTOP_KEEP_DAYS), time.monotonic() + BUDGET_SECONDS
    with connections.pool().connection() as conn:
        last = wiring.plugged("BACKSTOP_PRUNE")(conn, before=before, after=after, go_on=lambda: time.monotonic() < end)
        for besides in wiring.plugged_all("BACKSTOP_PRUNE_BESIDES") if last is None else ():
            besides(conn, before=before)
    if last is not None:
        prune.delay(last)
