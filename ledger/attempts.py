"""Attempts and their outcomes: evidence that outlives the rollback of what was tried."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try at a batch. The worker makes its id, so that a crash cannot hand the same id out twice."""

    thread: UUID
    ai_message_id: str
    generation: int
    subject: int
    on_behalf_of: int
    fence: int
    calls: list[Row]  # [{"index", "id", "tool", "arguments"}], as they are to run; "dropped": true for one that is not to
    model: str
    prompt_version: str
    performed_by: int | None = None  # a person who took the batch over
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Which call and statement failed, in the database's words: for reviewers, never for the model."""

    call: int | None = None
    statement: str | None = None
    statement_number: int | None = None
    sqlstate: str | None = None
    constraint: str | None = None
    table: str | None = None
    detail: str | None = None


OPEN = """
INSERT INTO public.ledger_attempt
    (id, thread, ai_message_id, generation, subject, on_behalf_of, performed_by, fence, calls, model, prompt_version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

CLOSE = """
INSERT INTO public.ledger_attempt_outcome
    (attempt_id, thread, ai_message_id, generation, outcome, calls, failed_call, failed_statement, statement_number,
     sqlstate, constraint_name, table_name, detail, problems, undone, told, duration_ms, partial)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (attempt_id) DO NOTHING
"""


def begin(conn: Connection[Any], attempt: Attempt) -> None:
    """Insert the attempt in a short transaction of its own; its commit does not wait for the disk."""
    conn.execute("BEGIN")
    conn.execute("SELECT set_config('synchronous_commit', 'off', true)")
    insert(conn, attempt)
    conn.execute("COMMIT")


def insert(conn: Connection[Any], attempt: Attempt) -> None:
    """Insert the attempt in the caller's transaction."""
    a = attempt
    conn.execute(
        OPEN,
        (
            a.id,
            a.thread,
            a.ai_message_id,
            a.generation,
            a.subject,
            a.on_behalf_of,
            a.performed_by,
            a.fence,
            Jsonb(a.calls),
            a.model,
            a.prompt_version,
        ),
    )


def close_committed(
    conn: Connection[Any],
    attempt: Attempt,
    *,
    duration_ms: int,
    told: list[Row] | None = None,
    failure: Failure | None = None,
) -> None:
    """Record inside the batch's transaction that it commits: the outcome exists if and only if the effects do.

    `told` are the answers that are not simply a call's result; a batch that commits without some of its calls names the
    first `failure` among them.
    """
    a, f = attempt, failure or Failure()
    conn.execute(
        CLOSE,
        (
            *(a.id, a.thread, a.ai_message_id, a.generation, "committed", None),
            *(f.call, f.statement, f.statement_number, f.sqlstate, f.constraint, f.table, f.detail),
            *(None, None, _json(told), duration_ms, failure is not None),
        ),
    )


def close(
    conn: Connection[Any],
    attempt: Attempt,
    *,
    outcome: str,
    duration_ms: int,
    failure: Failure | None = None,
    problems: list[Row] | None = None,
    undone: list[Row] | None = None,
    told: list[Row] | None = None,
) -> None:
    """Record any other outcome, after the batch's transaction; an outcome that exists already stays."""
    a, f = attempt, failure or Failure()
    conn.execute(
        CLOSE,
        (
            *(a.id, a.thread, a.ai_message_id, a.generation, outcome, Jsonb(a.calls)),
            *(f.call, f.statement, f.statement_number, f.sqlstate, f.constraint, f.table, f.detail),
            *(_json(problems), _json(undone), _json(told), duration_ms, False),
        ),
    )


def _json(value: list[Row] | None) -> Jsonb | None:
    return None if value is None else Jsonb(value)
