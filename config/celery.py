"""The Celery application. A task is a doorbell: the row it points to is the work."""

import os
import sys
from pathlib import Path
from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# A worker imports the tasks of its own queue: only the agent needs LangGraph. Beat knows all by name, others import all.
APPS: dict[str, list[str]] = {"outbox": ["outbox", "escalations"], "keeper": ["ledger", "sandbox.breaking"], "beat": []}

try:
    LOGIN = settings.LOGIN
except ImproperlyConfigured as fault:  # whoever starts a worker needs the sentences, not our stack
    sys.exit(str(fault))

os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # Django's, which import every page; a worker makes its own, below
app = Celery("backstop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(lambda: APPS.get(LOGIN, settings.INSTALLED_APPS))


@signals.worker_init.connect
def refuse_to_work_unsafely(**_: Any) -> None:
    """End a worker whose database or login is not what it must be, before it takes a task."""
    from config import checks

    checks.stop_unless_safe(tags=checks.WORKERS)


@signals.worker_ready.connect
@signals.beat_init.connect
def say_ready(**_: Any) -> None:
    """Prepare for the first task, then write this process's pid where whoever started it looks, such as a health check."""
    from config import readiness

    readiness.prepare()
    if file := os.environ.get("BACKSTOP_READY_FILE"):
        Path(file).write_text(str(os.getpid()))
