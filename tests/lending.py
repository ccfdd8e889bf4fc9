"""Connections and pools that one test after another is lent: opening one costs more than what most tests do with it.

One that is not as new when it comes back is closed, and one that the server has ended meanwhile is not lent again.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool

from ledger.connections import Pipelined
from tests import databases, plugin

Connection = psycopg.Connection[Any]
Pool = ConnectionPool[Connection]

_connections: dict[str, list[Connection]] = defaultdict(list)
_pools: dict[str, Pool] = {}


def address(login: str) -> str:
    """Return the address of this process's database as a login."""
    return databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)


@contextmanager
def connection(login: str) -> Iterator[Connection]:
    """Lend an autocommit connection as a login."""
    lent = next((known for known in _idle(login) if _answers(known)), None)
    conn = lent or psycopg.connect(address(login), autocommit=True)
    try:
        yield conn
    finally:
        if _is_as_new(conn) and _answers(conn):
            _connections[login].append(conn)
        else:
            conn.close()


@contextmanager
def pool(login: str) -> Iterator[Pool]:
    """Lend a pool of autocommit connections as a login, as a worker has it."""
    lent = _pools.get(login) or _opened(login)
    lent.check()
    try:
        yield lent
    finally:
        _pools.pop(login, None)
        if _is_whole(lent):
            _pools[login] = lent
        else:
            lent.close()


def _opened(login: str) -> Pool:
    kwargs = {"autocommit": True}
    return ConnectionPool(address(login), connection_class=Pipelined, kwargs=kwargs, min_size=1, max_size=10, open=True)


def close() -> None:
    """Close whatever is not lent."""
    for lent in _pools.values():
        lent.close()
    for conn in (conn for idle in _connections.values() for conn in idle):
        conn.close()


def _idle(login: str) -> Iterator[Connection]:
    while _connections[login]:
        yield _connections[login].pop()


def _is_as_new(conn: Connection) -> bool:
    if conn.closed or conn.info.transaction_status != TransactionStatus.IDLE:
        return False
    return conn.autocommit and conn.row_factory is tuple_row and not (conn._notice_handlers or conn._notify_handlers)


def _answers(conn: Connection) -> bool:
    """Forget what the session was told, and say whether the server is still there."""
    try:
        conn.execute("RESET ALL")
    except psycopg.OperationalError:
        return False
    return True


def _is_whole(lent: Pool) -> bool:
    counts = lent.get_stats()
    return not lent.closed and counts["pool_size"] == counts["pool_available"] and not counts.get("requests_waiting")
