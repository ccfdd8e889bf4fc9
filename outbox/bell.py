"""Ringing: ask a worker to look at the rows now. Losing a ring costs latency, never work."""

from typing import Any

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger()


def connect() -> None:
    """Connect to the broker, and import what ringing takes, before anybody waits for it. Raises after two tries."""
    with current_app.producer_or_acquire() as producer:
        producer.connection.connect()
    # Each ring makes both, and the first imports some twenty modules for them.
    current_app.AsyncResult(""), current_app.amqp.send_task_message


def ring(task: str, *arguments: Any) -> bool:
    """Send the named task and return whether the broker took it; call it after COMMIT only."""
    try:
        current_app.send_task(task, args=arguments, expires=30, retry=False, ignore_result=True)
    except (OSError, OperationalError) as error:
        log.warning("outbox.bell.unheard", task=task, error=type(error).__name__)
        return False
    return True
