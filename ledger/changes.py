"""Row changes, as the triggers recorded them."""

from typing import Any
from uuid import UUID

from psycopg import Connection

Row = dict[str, Any]

OF_ATTEMPT = """
SELECT call_index, table_name, operation, before, after FROM public.ledger_row_change
WHERE attempt_id = %s ORDER BY id
"""


def of_attempt(conn: Connection[Any], *, attempt_id: UUID) -> list[Row]:
    """Return the changes of an attempt in their order; inside its transaction also those that never commit."""
    names = ("call_index", "table_name", "operation", "before", "after")
    return [dict(zip(names, row, strict=True)) for row in conn.execute(OF_ATTEMPT, (attempt_id,)).fetchall()]
