"""This process's psycopg connections: one pool, one login, autocommit; and Django's own, for what a page writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, transaction
from psycopg import Connection, errors
from psycopg._preparing import Key, Prepare, PrepareManager
from psycopg._queries import PostgresQuery
from psycopg_pool import ConnectionPool

# What a database raises that went away, is shutting down or takes no writes now: it passes by itself.
AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)
BELIEVED = 1.0  # seconds
# A network that drops everything without a word is noticed within half a minute. Without it a run would wait for a quarter of
# an hour, while the heartbeat, on a connection of its own, keeps the lease. Seconds, and milliseconds for the last.
NOTICED = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
_first_use = Lock()  # two threads that came first would open two pools, and one would be lost with its connections


@contextmanager
def writing() -> Iterator[Connection[Any]]:
    """Open a transaction and give the psycopg connection under Django's, for the verbs that a page calls.

    What the page writes by itself commits with it; nobody waits for a row longer than 5 seconds.
    """
    with transaction.atomic():
        connection.ensure_connection()
        conn: Connection[Any] = connection.connection
        conn.execute("SELECT set_config('lock_timeout', '5s', true)")
        yield conn


def arguments() -> dict[str, Any]:
    """Return the keyword arguments that every connection of ours is opened with."""
    prepare = None if settings.POOLER == "transaction" else 5
    return {"autocommit": True, "prepare_threshold": prepare, **NOTICED}


class Prepared(PrepareManager):
    """The statements that a connection has prepared, without those that it only meant to.

    In a pipeline psycopg 3.3 keeps the name of a statement whose preparation was skipped because an earlier one had failed, and
    every later use of it fails.
    """

    def maybe_add_to_cache(self, query: PostgresQuery, prep: Prepare, name: bytes) -> Key | None:
        """Return the key of what is about to be prepared, too: what came of it is looked at then."""
        key = super().maybe_add_to_cache(query, prep, name)
        return self.key(query) if prep is Prepare.SHOULD else key


class Pipelined(Connection[Any]):
    """A connection that lives on after pipelines that failed."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        """Wrap libpq's connection, as psycopg does."""
        super().__init__(*arguments, **more)
        self._prepared = Prepared()


def check_if_idle(conn: Connection[Any]) -> None:
    """Raise when the connection is dead; one that was looked at a moment ago is believed, which saves a round trip."""
    now = monotonic()
    if now - getattr(conn, "_looked_at", 0.0) > BELIEVED:
        ConnectionPool.check_connection(conn)
        conn._looked_at = now  # type: ignore[attr-defined]


class Pool(ConnectionPool[Connection[Any]]):
    """A pool that makes all of its connections anew when one is dead, or at a server that takes no writes any more.

    Where one is, all are: the server has restarted, or is not the primary now. Found one after the other, with psycopg's
    growing waits in between, they would cost a busy process every try that a batch has.
    """

    # Tries to connect come further and further apart: after an outage of a minute the next would come a minute later.
    # A try that ended is begun anew by whoever asks for a connection next.
    RECONNECT_SECONDS = 5

    def __init__(self, url: str, *, size: int, name: str = "", timeout: float = 10) -> None:
        """Open the pool; whoever finds all connections in use waits for `timeout` seconds."""
        super().__init__(
            url, connection_class=Pipelined, kwargs=arguments(), min_size=1, max_size=size, timeout=timeout, max_idle=300,
            check=self._check_one, reconnect_timeout=self.RECONNECT_SECONDS, open=True, name=name or None,
        )  # fmt: skip

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[Connection[Any]]:
        """Lend a connection for the block."""
        with super().connection(timeout) as conn:
            try:
                yield conn
            except errors.ReadOnlySqlTransaction:
                conn.close()
                raise

    def putconn(self, conn: Connection[Any]) -> None:
        """Take a connection back."""
        if conn.closed:
            self.drain()
        super().putconn(conn)

    def _check_one(self, conn: Connection[Any]) -> None:
        try:
            check_if_idle(conn)
        except psycopg.Error:
            self.drain()
            raise


def pool() -> Pool:
    """Return the pool, opened at first use (after any fork)."""
    with _first_use:
        return _pool()


def connect() -> None:
    """Open the pool and its first connection before anybody waits for it. Raises PoolTimeout after 2 seconds."""
    with pool().connection(timeout=2):
        pass


@cache
def _pool() -> Pool:
    return Pool(settings.DATABASE_URL, size=settings.POOL_SIZE, name=settings.LOGIN)


OVERLONG = """
SELECT count(pg_catalog.pg_terminate_backend(pid)) FROM pg_catalog.pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND pid <> pg_catalog.pg_backend_pid()
  AND xact_start < now() - make_interval(secs => %s)
"""


def end_overlong(conn: Connection[Any], *, seconds: float) -> int:
    """End what this login has kept open for longer, and return how much that was: its process stopped in the middle.

    PostgreSQL does it by itself from 17 on (`transaction_timeout`, config/logins.py). Before that nothing else frees what a
    process has locked that stopped between two statements of a pipeline.
    """
    row = conn.execute(OVERLONG, (seconds,)).fetchone()
    return int(row[0]) if row else 0


def can_limit(conn: Connection[Any]) -> bool:
    """Return whether the server ends overlong transactions by itself."""
    return conn.info.server_version >= 170000
