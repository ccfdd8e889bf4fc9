"""What beat rings for, and how often in seconds: the rows are the work, a lost bell comes again. A part of the settings."""

from typing import Any

CELERY_TASK_DEFAULT_QUEUE = "agent"
CELERY_TASK_ROUTES = {"agent.*": {"queue": "agent"}, "outbox.*": {"queue": "outbox"}, "ledger.*": {"queue": "keeper"}}
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep": {"task": "agent.sweep", "schedule": 5.0, "options": {"expires": 30}},
    "expire": {"task": "agent.expire", "schedule": 60.0, "options": {"expires": 60}},
    "remind": {"task": "agent.remind", "schedule": 60.0, "options": {"expires": 60}},
    "relay": {"task": "outbox.deliver", "schedule": 5.0, "options": {"expires": 30}},
    "reconcile": {"task": "outbox.reconcile", "schedule": 15.0, "options": {"expires": 30}},
    "partitions": {"task": "ledger.make_partitions", "schedule": 6 * 3600.0, "options": {"expires": 3600}},
}
