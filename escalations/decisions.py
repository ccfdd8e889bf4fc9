"""The one decision of an escalation: what it is, who may take it, how it is signed and written down."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from escalations import facts, policies, rows
from escalations.rows import Row


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was decided, as the thread will get it and the page shows it."""

    id: int
    escalation: int
    kind: str
    text: str
    decided_by: int | None
    name: str
    waived: list[dict[str, Any]]
    thread: UUID | None
    interrupt_id: str | None

    def as_resume_value(self) -> dict[str, Any]:
        """Return what the waiting interrupt is resumed with."""
        return {
            "decision": self.id,
            "kind": self.kind,
            "text": self.text,
            "decided_by": self.decided_by,
            "name": self.name,
            "waived": self.waived,
        }


def check(*, row: Row, kind: str, text: str) -> None:
    """Raise the fact that forbids this decision, whoever takes it."""
    if kind not in policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"]):
        raise facts.NotAllowed(decision=kind)
    if kind in policies.NEEDS_TEXT and not text:
        raise facts.TextMissing(decision=kind)


def sign(conn: Connection[Any], *, row: Row, user: int, number: int) -> Row:
    """Put the reviewer's name under the newest revision and return it; raises `OwnRequest`, `Outdated` (another was shown)."""
    if rows.has_asked(conn, row=row, user=user):
        raise facts.OwnRequest
    with conn.cursor(row_factory=dict_row) as cursor:
        newest = cursor.execute(
            "SELECT id, number, verdicts::text AS verdicts FROM public.escalations_revision"
            " WHERE escalation_id = %s ORDER BY number DESC LIMIT 1",
            (row["id"],),
        ).fetchone()
    if newest is None or newest["number"] != number:
        raise facts.Outdated
    conn.execute(
        "INSERT INTO public.escalations_signature (escalation_id, revision_id, reviewer, requested_by) VALUES (%s, %s, %s, %s)",
        (row["id"], newest["id"], user, row["requested_by"]),
    )
    return newest


def record(conn: Connection[Any], *, row: Row, kind: str, text: str, user: int | None, signed: Row | None = None) -> Decision:
    """Insert the decision; a second one for the same escalation is refused by the database too."""
    waived = policies.waived(json.loads(signed["verdicts"])) if signed else []
    inserted = conn.execute(
        "INSERT INTO public.escalations_decision (escalation_id, kind, text, revision_id, waived, decided_by, requested_by)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id",
        (row["id"], kind, text, signed["id"] if signed else None, Jsonb(waived), user, row["requested_by"]),
    ).fetchone()
    assert inserted is not None
    return Decision(
        id=inserted[0],
        escalation=row["id"],
        kind=kind,
        text=text,
        decided_by=user,
        name=rows.name_of(conn, user=user),
        waived=waived,
        thread=row["thread"],
        interrupt_id=row["interrupt_id"],
    )
