"""A PostgreSQL address as an entry of Django's `DATABASES`."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict


def django_settings(*, url: str, pooler: str) -> dict[str, Any]:
    """Return one entry of `DATABASES`; an empty address gives one that cannot connect."""
    parts: dict[str, Any] = dict(conninfo_to_dict(url)) if url else {}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "backstop"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
        "CONN_HEALTH_CHECKS": True,
        "CONN_MAX_AGE": 60,
        "DISABLE_SERVER_SIDE_CURSORS": pooler == "transaction",
    }
