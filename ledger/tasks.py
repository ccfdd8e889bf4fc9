"""Doorbells of the keeper worker."""

import structlog
from celery import shared_task

from ledger import connections, partitions

log = structlog.get_logger()


@shared_task(name="ledger.make_partitions")
def make_partitions() -> None:
    """Make the partitions of the coming months."""
    with connections.pool().connection() as conn:
        if made := partitions.make(conn):
            log.info("ledger.partitions.made", number=made)
