"""Signatures: reviewers' names under what one preview showed. The one that completes the quorum decides."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors

from escalations import decisions, facts, policies, previews, revisions, rows
from escalations.previews import Shown
from escalations.revisions import Revision
from escalations.rows import Row


@dataclass(frozen=True, kw_only=True)
class Signed:
    """What came of a signature: the decision when it was the last one that was needed."""

    decision: decisions.Decision | None
    signatures: int
    needs: int


def check(conn: Connection[Any], *, row: Row, user: int, revision: int, preview: int) -> tuple[Revision, Shown]:
    """Return what is to be signed, or raise the fact that forbids it.

    That is `NotAllowed`, `Outdated`, `NotReady`, `OwnRequest` or `OwnAnswer`.
    """
    newest = revisions.newest(conn, escalation=row["id"])
    if newest is None or not allowed(row, newest):
        raise facts.NotAllowed(decision="approve")
    shown = previews.newest(conn, revision=newest.id)
    if newest.number != revision or shown is None or shown.id != preview:
        raise facts.Outdated
    if shown.outcome != "clean":
        raise facts.NotReady(outcome=shown.outcome)
    if rows.has_asked(conn, row=row, user=user):
        raise facts.OwnRequest
    if rows.has_answered(conn, row=row, user=user):
        raise facts.OwnAnswer
    return newest, shown


def allowed(row: Row, newest: Revision) -> bool:
    """Return whether the kind takes a signature under this revision."""
    possible = policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"], revision=newest.number)
    return ("take_over" if newest.as_person else "approve") in possible


def add(conn: Connection[Any], *, escalation: int, revision: Revision, preview: Shown, user: int) -> None:
    """Insert the signature; the database judges it. Raises `OwnEdit`, `OwnRequest`, `Outdated`, `SignedAlready`."""
    try:
        with conn.transaction():
            conn.execute(
                "INSERT INTO public.escalations_signature (escalation_id, revision_id, preview_id, reviewer)"
                " VALUES (%s, %s, %s, %s)",
                (escalation, revision.id, preview.id, user),
            )
    except (errors.CheckViolation, errors.UniqueViolation) as error:
        fact = FACTS.get(error.diag.constraint_name or "")
        if fact is None:
            raise
        raise fact from error


# What the database refuses, as the fact that it is.
FACTS: dict[str, type[facts.Fact]] = {
    "escalations_signature_once": facts.SignedAlready,
    "escalations_signature_four_eyes": facts.OwnRequest,
    "escalations_signature_not_asked": facts.OwnRequest,
    "escalations_signature_not_answered": facts.OwnAnswer,
    "escalations_signature_own_edit": facts.OwnEdit,
    "escalations_signature_newest_revision": facts.Outdated,
    "escalations_signature_newest_preview": facts.Outdated,
}


def count(conn: Connection[Any], *, revision: Revision, preview: Shown) -> int:
    """Return how many people signed what this preview shows: the same effects, held for the same reasons."""
    row = conn.execute(
        "SELECT count(DISTINCT s.reviewer) FROM public.escalations_signature s"
        " JOIN public.escalations_preview p ON p.id = s.preview_id"
        " JOIN public.escalations_preview shown ON shown.id = %s AND shown.digest = p.digest AND shown.verdicts = p.verdicts"
        " WHERE s.revision_id = %s",
        (preview.id, revision.id),
    ).fetchone()
    assert row is not None
    return int(row[0])
