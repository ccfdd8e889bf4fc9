"""Faults that a database really has: another session's lock, a statement that is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]


def hold(conn: Connection, statement: str) -> None:
    """Begin a transaction with the statement, whose locks stay until `let_go`."""
    conn.execute("BEGIN")
    conn.execute(statement)


def let_go(conn: Connection) -> None:
    """Commit the transaction that `hold` began."""
    conn.execute("COMMIT")


def waits(conn: Connection) -> bool:
    """Say whether a session of this database waits for a lock of another one."""
    query = "SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()"
    return conn.execute(query).fetchone() is not None


@contextmanager
def refusing(superuser: Connection, action: str, table: str) -> Iterator[None]:
    """Let every `action` (UPDATE, INSERT, DELETE) on a table fail in the block, whoever tries it."""
    superuser.execute(
        "CREATE FUNCTION public.test_fault() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'a fault that a test made'; END $$"
    )
    try:
        superuser.execute(
            f"CREATE TRIGGER test_fault BEFORE {action} ON public.{table} FOR EACH STATEMENT EXECUTE FUNCTION public.test_fault()"
        )
        yield
    finally:
        superuser.execute("DROP FUNCTION public.test_fault() CASCADE")
