"""One statement, one row: the verbs run in pipeline mode, where every fetch waits for the database once."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row


def one(conn: Connection[Any], statement: str, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """Run a statement and return its first row by column name, or None."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, parameters).fetchone()
