"""The pool: a connection that was looked at a moment ago is believed, a dead one is replaced."""

from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from ledger import connections
from tests import databases, plugin


@pytest.fixture
def pool(database: None) -> Any:
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
    with ConnectionPool(address, kwargs={"autocommit": True}, min_size=1, max_size=1, check=connections.check_if_idle) as pool:
        yield pool


def pid(pool: Any) -> int:
    with pool.connection() as conn:
        return int(conn.execute("SELECT pg_backend_pid()").fetchone()[0])


def test_it_replaces_a_dead_connection(pool: Any, superuser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BELIEVED", 0.0)
    first = pid(pool)
    superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
    assert pid(pool) != first


def test_it_fails_once_at_most_after_believing(pool: Any, superuser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BELIEVED", 3600.0)
    first = pid(pool)
    superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
    with pytest.raises(psycopg.OperationalError):
        pid(pool)
    assert pid(pool) != first
