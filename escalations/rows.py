"""Reading an escalation inside a transaction, locked when it is about to change."""

import json
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from escalations import facts, policies

Row = dict[str, Any]
# jsonb travels as text: Django's connection does not decode it.
SELECT = (
    "SELECT id, kind, state, object, thread, interrupt_id, subject, requested_by, ai_message_id, generation,"
    " payload::text AS payload, follows_id, opened_at, due_at, expires_at, claimed_by, claimed_until, decided_at,"
    " coalesce(state = 'claimed' AND claimed_until > now(), false) AS held"
    " FROM public.escalations_escalation WHERE id = %s"
)
ANSWERED = """
SELECT EXISTS (
    SELECT FROM public.escalations_decision d JOIN public.escalations_escalation a ON a.id = d.escalation_id
    WHERE a.thread = %(thread)s AND d.kind = 'answer' AND d.decided_by = %(user)s AND NOT EXISTS (
        SELECT FROM public.agent_staff_message m
        WHERE m.thread = a.thread AND m.state = 'taken' AND m.taken_at > d.decided_at))
"""


def found(conn: Connection[Any], *, escalation: int, lock: bool = False) -> Row:
    """Return the escalation as a dict; raises `NotFound`."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SELECT + (" FOR UPDATE" if lock else ""), (escalation,)).fetchone()
    if row is None:
        raise facts.NotFound(escalation=escalation)
    return row | {"payload": json.loads(row["payload"])}


def locked(conn: Connection[Any], *, escalation: int, verb: str) -> Row:
    """Return the escalation under its row lock; raises `NotFound`, `AlreadyDecided` when its state forbids the verb."""
    row = found(conn, escalation=escalation, lock=True)
    if policies.target(state=row["state"], verb=verb) is None:
        raise winner(conn, row=row)
    return row


def winner(conn: Connection[Any], *, row: Row) -> facts.AlreadyDecided:
    """Return the fact that somebody was first, with the name."""
    decision = conn.execute(
        "SELECT kind, decided_by, decided_at FROM public.escalations_decision WHERE escalation_id = %s", (row["id"],)
    ).fetchone()
    kind, user, at = decision or (row["state"], None, row["decided_at"])
    return facts.AlreadyDecided(kind=kind, name=name_of(conn, user=user), at=at)


def check_free(conn: Connection[Any], *, row: Row, user: int) -> None:
    """Raise `HeldByAnother` while somebody else's claim is valid."""
    if row["held"] and row["claimed_by"] != user:
        raise facts.HeldByAnother(name=name_of(conn, user=row["claimed_by"]), until=row["claimed_until"])


def name_of(conn: Connection[Any], *, user: int | None) -> str:
    """Return a person's name; the system's own policy is called so."""
    if user is None:
        return "the system"
    row = conn.execute("SELECT username FROM public.auth_user WHERE id = %s", (user,)).fetchone()
    return str(row[0]) if row else "somebody"


def has_asked(conn: Connection[Any], *, row: Row, user: int) -> bool:
    """Return whether the person asked for this: wrote any message of the conversation that the agent has read.

    Several people may write in one conversation, and the requester is only whoever wrote last.
    """
    if row["requested_by"] == user:
        return True
    wrote = "SELECT EXISTS (SELECT FROM public.agent_staff_message WHERE thread = %s AND author = %s AND state = 'taken')"
    found = conn.execute(wrote, (row["thread"], user)).fetchone()
    return bool(found and found[0])


def has_answered(conn: Connection[Any], *, row: Row, user: int) -> bool:
    """Return whether the agent proposes this on an answer of the person's: staff have not written to it since.

    Whoever tells the agent what to do and approves it when it does would be alone.
    """
    found = conn.execute(ANSWERED, {"thread": row["thread"], "user": user}).fetchone()
    return bool(found and found[0])
