"""What beat rings for, and how often in seconds: the rows are the work, a lost bell comes again. A part of the settings."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import env

CELERY_TASK_DEFAULT_QUEUE = "agent"
CELERY_TASK_ROUTES = {"agent.*": {"queue": "agent"}, "outbox.*": {"queue": "outbox"}, "ledger.*": {"queue": "keeper"}}
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep": {"task": "agent.sweep", "schedule": 5.0, "options": {"expires": 30}},
    "expire": {"task": "agent.expire", "schedule": 60.0, "options": {"expires": 60}},
    "remind": {"task": "agent.remind", "schedule": 60.0, "options": {"expires": 60}},
    "relay": {"task": "outbox.deliver", "schedule": 5.0, "options": {"expires": 30}},
    "reconcile": {"task": "outbox.reconcile", "schedule": 15.0, "options": {"expires": 30}},
    "partitions": {"task": "ledger.make_partitions", "schedule": 6 * 3600.0, "options": {"expires": 3600}},
    "prune": {"task": "ledger.prune", "schedule": 6 * 3600.0, "options": {"expires": 3600}},
}
# Finished messages of the outbox, with their evidence, go after so many days, unless a row elsewhere refers to them.
BACKSTOP_KEEP_DAYS = env.number("BACKSTOP_KEEP_DAYS", 400)
if BACKSTOP_KEEP_DAYS < 30:
    raise ImproperlyConfigured("BACKSTOP_KEEP_DAYS must be 30 at least: what is younger may still be asked about.")
