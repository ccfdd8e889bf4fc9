"""The doorbell of scans, in the outbox worker: it alone may ask the provider."""

from celery import shared_task

from escalations.reconciling import scanning
from ledger import connections
from outbox import reconciling


@shared_task(name="outbox.reconcile")
def reconcile() -> None:
    """Carry out the scans that are asked for or due."""
    with connections.pool().connection() as conn:
        scanning.work(conn, get=reconciling.provider())
