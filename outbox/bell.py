"""Ringing: ask a worker to look at the rows now. Losing a ring costs latency, never work."""

from typing import Any

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger()


def ring(task: str, *arguments: Any) -> bool:
    """Send the named task and return whether the broker took it; call it after COMMIT only."""
    try:
        current_app.send_task(task, args=arguments, expires=30, retry=False, ignore_result=True)
    except (OSError, OperationalError) as error:
        log.warning("outbox.bell.unheard", task=task, error=type(error).__name__)
        return False
    return True
