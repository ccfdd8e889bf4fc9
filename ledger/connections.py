"""This process's psycopg connections: one pool, one login, autocommit, so that every transaction is visible."""

from functools import cache
from time import monotonic
from typing import Any

from django.conf import settings
from psycopg import Connection
from psycopg_pool import ConnectionPool

BELIEVED = 1.0  # seconds


def arguments() -> dict[str, Any]:
    """Return the keyword arguments that every connection of ours is opened with."""
    prepare = None if settings.POOLER == "transaction" else 5
    return {"autocommit": True, "prepare_threshold": prepare, "keepalives_idle": 30}


def check_if_idle(conn: Connection[Any]) -> None:
    """Raise when the connection is dead; one that was looked at a moment ago is believed, which saves a round trip."""
    now = monotonic()
    if now - getattr(conn, "_looked_at", 0.0) > BELIEVED:
        ConnectionPool.check_connection(conn)
        conn._looked_at = now  # type: ignore[attr-defined]


@cache
def pool() -> "ConnectionPool[Connection[Any]]":
    """Return the pool, opened at first use (after any fork)."""
    return ConnectionPool(
        settings.DATABASE_URL,
        kwargs=arguments(),
        min_size=1,
        max_size=settings.POOL_SIZE,
        timeout=10,
        max_idle=300,
        check=check_if_idle,
        open=True,
        name=settings.LOGIN,
    )
