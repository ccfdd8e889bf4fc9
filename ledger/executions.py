"""The idempotency ledger: one row for each applied call, written with its effects."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection, Cursor
from psycopg.types.json import Jsonb

from ledger.attempts import Attempt

LOOK_UP = """
SELECT e.call_index, e.fingerprint, e.result, e.tool, e.tool_call_id, o.told FROM public.ledger_execution e
LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = e.attempt_id
WHERE e.thread = %s AND e.ai_message_id = %s ORDER BY e.call_index
"""

RECORD = """
INSERT INTO public.ledger_execution
    (thread, ai_message_id, call_index, generation, tool_call_id, tool, fingerprint, arguments, result,
     attempt_id, subject, on_behalf_of, performed_by, model, prompt_version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A call that was applied before, as the ledger knows it."""

    call_index: int
    fingerprint: bytes
    result: dict[str, Any]
    tool: str
    tool_call_id: str
    told: list[dict[str, Any]] | None = None  # of its batch: the answers that are not simply a call's result


class KeyConflict(Exception):
    """A known key came back with another tool or other arguments."""


def look_up(conn: Connection[Any], attempt: Attempt) -> Cursor[Any]:
    """Ask for the batch's rows; `read` takes the answer later, so that a pipeline need not wait."""
    return conn.execute(LOOK_UP, (attempt.thread, attempt.ai_message_id))


def read(cursor: Cursor[Any]) -> list[Stored]:
    """Return what `look_up` asked for."""
    names = ("call_index", "fingerprint", "result", "tool", "tool_call_id", "told")
    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return [Stored(**row | {"fingerprint": bytes(row["fingerprint"])}) for row in rows]


def record(
    conn: Connection[Any],
    attempt: Attempt,
    *,
    call_index: int,
    tool_call_id: str,
    tool: str,
    fingerprint: bytes,
    arguments: dict[str, Any],
    result: dict[str, Any],
) -> None:
    """Record one applied call, inside its savepoint."""
    a = attempt
    conn.execute(
        RECORD,
        (
            *(a.thread, a.ai_message_id, call_index, a.generation, tool_call_id, tool),
            *(fingerprint, Jsonb(arguments), Jsonb(result), a.id, a.subject, a.on_behalf_of),
            *(a.performed_by, a.model, a.prompt_version),
        ),
    )
