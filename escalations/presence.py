"""Who has an escalation's page open right now."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

GONE = timedelta(seconds=30)  # a page says every 10 seconds that it is there


@dataclass(frozen=True, kw_only=True)
class Looker:
    """Somebody else who looks."""

    person: int
    name: str
    editing: bool
    seen_at: datetime


def see(conn: Connection[Any], *, escalation: int, user: int, editing: bool = False) -> None:
    """Note that a person looks, or edits; whoever is gone is forgotten on the way."""
    with conn.transaction():
        conn.execute(
            "DELETE FROM public.escalations_presence WHERE (escalation_id, person) IN (SELECT escalation_id, person"
            " FROM public.escalations_presence WHERE seen_at < now() - %s FOR UPDATE SKIP LOCKED)",
            (GONE,),
        )
        conn.execute(
            "INSERT INTO public.escalations_presence (escalation_id, person, editing, seen_at) VALUES (%s, %s, %s, now())"
            " ON CONFLICT (escalation_id, person) DO UPDATE SET editing = EXCLUDED.editing, seen_at = EXCLUDED.seen_at",
            (escalation, user, editing),
        )


def leave(conn: Connection[Any], *, escalation: int, user: int) -> None:
    """Note that a person has closed the page."""
    conn.execute("DELETE FROM public.escalations_presence WHERE escalation_id = %s AND person = %s", (escalation, user))


def others(conn: Connection[Any], *, escalation: int, user: int) -> list[Looker]:
    """Return who else looks now, whoever edits first."""
    rows = conn.execute(
        "SELECT p.person, u.username, p.editing, p.seen_at FROM public.escalations_presence p"
        " JOIN public.auth_user u ON u.id = p.person"
        " WHERE p.escalation_id = %s AND p.person <> %s AND p.seen_at >= now() - %s ORDER BY p.editing DESC, u.username",
        (escalation, user, GONE),
    ).fetchall()
    return [Looker(person=row[0], name=row[1], editing=row[2], seen_at=row[3]) for row in rows]
