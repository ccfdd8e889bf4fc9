"""Row changes, as the triggers recorded them."""

from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

Row = dict[str, Any]

OF_ATTEMPT = """
SELECT call_index, table_name, operation, before, after FROM public.ledger_row_change
WHERE attempt_id = %s ORDER BY id
"""


def of_attempt(conn: Connection[Any], *, attempt_id: UUID) -> list[Row]:
    """Return the changes of an attempt in their order; inside its transaction also those that never commit."""
    return read(ask(conn, attempt_id=attempt_id))


def ask(conn: Connection[Any], *, attempt_id: UUID) -> Cursor[Any]:
    """Ask for the same; `read` takes the answer later."""
    return conn.execute(OF_ATTEMPT, (attempt_id,))


def read(cursor: Cursor[Any]) -> list[Row]:
    """Return what `ask` asked for."""
    names = ("call_index", "table_name", "operation", "before", "after")
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
