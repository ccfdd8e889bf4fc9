"""The one decision of an escalation: what it is, which are possible, and how it is written down."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from escalations import facts, policies, rows
from escalations.previews import Shown
from escalations.revisions import Revision
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
    revision: int | None  # the number of what was approved; None: nothing is to run because of this
    thread: UUID | None
    interrupt_id: str | None

    def as_resume_value(self) -> dict[str, Any]:
        """Return what the waiting interrupt is resumed with: what it allows is read from the rows, never from here."""
        return {
            "decision": self.id,
            "kind": self.kind,
            "text": self.text,
            "decided_by": self.decided_by,
            "name": self.name,
            "revision": self.revision,
        }


def check(*, row: Row, kind: str, text: str) -> None:
    """Raise the fact that forbids this decision, whoever takes it. What is signed or edited has verbs of its own."""
    possible = policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"])
    if kind not in possible or kind in policies.SIGNED | policies.REVISING | {"withdraw"} | set(policies.EXITS):
        raise facts.NotAllowed(decision=kind)
    if kind in policies.NEEDS_TEXT and not text:
        raise facts.TextMissing(decision=kind)


def record(
    conn: Connection[Any],
    *,
    row: Row,
    kind: str,
    text: str,
    user: int | None,
    revision: Revision | None = None,
    preview: Shown | None = None,
    needs: int | None = None,
) -> Decision:
    """Insert the decision; a second one for the same escalation is refused by the database too.

    `needs` is how many people have to sign what has no preview; what has one says it itself.
    """
    waived = policies.waived(preview.verdicts) if preview else []
    inserted = conn.execute(
        "INSERT INTO public.escalations_decision (escalation_id, kind, text, revision_id, preview_id, waived, decided_by, needs)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
        (row["id"], kind, text, revision and revision.id, preview and preview.id, Jsonb(waived), user, needs),
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
        revision=revision.number if revision else None,
        thread=row["thread"],
        interrupt_id=row["interrupt_id"],
    )
