"""Previews: a page asks for one, the agent's worker makes it, and from then on it is what reviewers were shown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from escalations import acts

Outcome = Literal["clean", "fails", "invalid", "refused", "unavailable"]
Rows = Sequence[Mapping[str, Any]]
UNMADE = """
SELECT p.id, r.escalation_id AS escalation, r.id AS revision, r.number, r.calls::text AS calls, r.as_person, r.author,
    e.ai_message_id, e.generation, e.kind
FROM public.escalations_preview p
JOIN public.escalations_revision r ON r.id = p.revision_id
JOIN public.escalations_escalation e ON e.id = r.escalation_id
WHERE p.made_at IS NULL AND e.thread = %s AND e.state IN ('open', 'claimed') ORDER BY p.id
"""


@dataclass(frozen=True, kw_only=True)
class Made:
    """What came of judging a revision and running it for real, before it was rolled back."""

    outcome: Outcome
    policy_version: str
    verdicts: Rows  # of the gate and of the cumulative windows, as `Verdict.row()` gives them
    allowed: bool  # clean, and nothing holds it
    needs: int  # reviewers who have to sign: 1 or 2
    digest: bytes | None = None  # of changes and messages; exactly a clean one has it
    changes: Rows | None = None
    messages: Rows | None = None
    results: Mapping[str, Any] | None = None  # by call index
    failure: Mapping[str, Any] | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A preview that waits to be made."""

    id: int
    escalation: int
    revision: int  # its id
    number: int
    calls: list[dict[str, Any]]
    as_person: bool
    author: int | None
    ai_message_id: str | None
    generation: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a signature needs to know of a preview."""

    id: int
    outcome: Outcome | None  # None: not made yet
    needs: int | None
    verdicts: list[dict[str, Any]]


def ask(conn: Connection[Any], *, revision: int, user: int | None) -> int:
    """Ask for a preview of a revision and return its id; one that waits already is not asked for again.

    The caller rings `agent.drive` with the thread after COMMIT.
    """
    # Two who ask at once do it one after the other.
    found = conn.execute("SELECT escalation_id FROM public.escalations_revision WHERE id = %s", (revision,)).fetchone()
    assert found is not None, revision
    conn.execute("SELECT FROM public.escalations_escalation WHERE id = %s FOR UPDATE", found)
    waits = conn.execute(
        "SELECT id FROM public.escalations_preview WHERE revision_id = %s AND made_at IS NULL", (revision,)
    ).fetchone()
    if waits:
        return int(waits[0])
    inserted = conn.execute(
        "INSERT INTO public.escalations_preview (revision_id, requested_by) VALUES (%s, %s) RETURNING id", (revision, user)
    ).fetchone()
    assert inserted is not None
    if user is not None:
        acts.note(conn, escalation=found[0], kind="previewed", by=user, detail={"preview": inserted[0]})
    return int(inserted[0])


def unmade(conn: Connection[Any], *, thread: UUID) -> list[Asked]:
    """Return the previews that the thread's undecided questions wait for, oldest first."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(UNMADE, (thread,)).fetchall()
    return [Asked(**row | {"calls": json.loads(row["calls"])}) for row in rows]


def store(conn: Connection[Any], *, preview: int, made: Made) -> bool:
    """Fill a preview in, once; return False when another worker was first. What is stored never changes."""
    stored = conn.execute(
        "UPDATE public.escalations_preview SET made_at = now(), outcome = %s, policy_version = %s, verdicts = %s, allowed = %s,"
        " needs = %s, digest = %s, changes = %s, messages = %s, results = %s, failure = %s, duration_ms = %s"
        " WHERE id = %s AND made_at IS NULL",
        (
            *(made.outcome, made.policy_version, Jsonb(list(made.verdicts)), made.allowed, made.needs, made.digest),
            *(_json(made.changes), _json(made.messages), _json(made.results), _json(made.failure), made.duration_ms, preview),
        ),
    )
    return stored.rowcount == 1


def newest(conn: Connection[Any], *, revision: int) -> Shown | None:
    """Return the newest preview of a revision, made or not; None when nobody asked for one."""
    row = conn.execute(
        "SELECT id, outcome, needs, verdicts::text FROM public.escalations_preview"
        " WHERE revision_id = %s ORDER BY id DESC LIMIT 1",
        (revision,),
    ).fetchone()
    return row and Shown(id=row[0], outcome=row[1], needs=row[2], verdicts=json.loads(row[3] or "[]"))


def _json(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(value)
