"""Monthly partitions of what grows for ever: made ahead of time, so that nothing lands in a default partition."""

from typing import Any

from psycopg import Connection

AHEAD = 3  # months


def make(conn: Connection[Any]) -> int:
    """Make this month's partitions and those of `AHEAD` more, and return how many were missing.

    `conn` is the owner's or the keeper's; the database lets nobody else.
    """
    row = conn.execute("SELECT public.ledger_make_partitions(%s)", (AHEAD,)).fetchone()
    return int(row[0]) if row else 0
