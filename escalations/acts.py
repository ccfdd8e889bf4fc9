"""What happened to an escalation besides its decision, as rows that are only ever added."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb


def note(conn: Connection[Any], *, escalation: int, kind: str, by: int | None, detail: Mapping[str, Any] | None = None) -> None:
    """Add one act in the caller's transaction; `by` None is the system."""
    conn.execute(
        "INSERT INTO public.escalations_act (escalation_id, kind, by, detail) VALUES (%s, %s, %s, %s)",
        (escalation, kind, by, Jsonb(dict(detail or {}))),
    )
