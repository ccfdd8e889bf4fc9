"""Addresses in the forms that Django and Celery want."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict

# Under ASGI every request has a thread of its own, so a connection that a thread keeps is a connection lost.
POOL = {"min_size": 1, "max_size": 20, "timeout": 10, "max_idle": 300, "reconnect_timeout": 5}


def database(*, url: str, pooler: str, pooled: bool = False) -> dict[str, Any]:
    """Return one entry of `DATABASES`; an empty address gives one that cannot connect. Web processes are `pooled`."""
    parts: dict[str, Any] = dict(conninfo_to_dict(url)) if url else {}
    if pooled:
        parts["pool"] = dict(POOL)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "backstop"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
        "CONN_HEALTH_CHECKS": True,
        "CONN_MAX_AGE": 0 if pooled else 60,
        "DISABLE_SERVER_SIDE_CURSORS": pooler == "transaction",
    }


def broker(url: str) -> str:
    """Return a redis-py address as Celery's: a unix socket is written differently there."""
    if not url.startswith("unix://"):
        return url
    return "redis+socket://" + url.removeprefix("unix://").replace("?db=", "?virtual_host=")
