"""Aborts: answers that the model was given for a batch that was not applied. Such a batch can never commit."""

from typing import Any

from psycopg import Connection, Cursor
from psycopg.types.json import Jsonb

from ledger.attempts import Attempt

Row = dict[str, Any]

LOOK_UP = "SELECT told FROM public.ledger_batch_abort WHERE thread = %s AND ai_message_id = %s AND generation = %s"

RECORD = """
INSERT INTO public.ledger_batch_abort (thread, ai_message_id, generation, attempt_id, told)
VALUES (%s, %s, %s, %s, %s)
"""


def look_up(conn: Connection[Any], attempt: Attempt) -> Cursor[Any]:
    """Ask for the abort of this batch and generation; `read` takes the answer later."""
    return conn.execute(LOOK_UP, (attempt.thread, attempt.ai_message_id, attempt.generation))


def read(cursor: Cursor[Any]) -> list[Row] | None:
    """Return the answers that were given, or None when the batch was never aborted."""
    row = cursor.fetchone()
    return row[0] if row else None


def record(conn: Connection[Any], attempt: Attempt, *, told: list[Row]) -> None:
    """Record the answers. The caller holds the thread's lock and fence and saw neither executions nor an abort."""
    conn.execute(RECORD, (attempt.thread, attempt.ai_message_id, attempt.generation, attempt.id, Jsonb(told)))
