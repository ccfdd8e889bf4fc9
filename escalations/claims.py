"""Who works on an escalation now, and when it is looked at again."""

from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

from escalations import acts, facts, policies, rows

LEASE = timedelta(minutes=15)
LONGEST_SLEEP = timedelta(days=7)
REVIEWS = """
SELECT EXISTS (SELECT FROM public.auth_user u JOIN public.auth_user_groups g ON g.user_id = u.id
               JOIN public.auth_group r ON r.id = g.group_id WHERE u.id = %s AND u.is_active AND r.name = 'reviewer')
"""


def claim(conn: Connection[Any], *, escalation: int, user: int, from_another: bool = False) -> None:
    """Hold an escalation for 15 minutes, or renew one's own claim; with `from_another`, from whoever holds it. It wakes up.

    Raises `NotFound`, `AlreadyDecided`, `HeldByAnother`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="claim")
        if not from_another:
            rows.check_free(conn, row=row, user=user)
        _hold(conn, escalation=escalation, user=user)
        holder = row["claimed_by"] if row["held"] else None
        if holder != user:  # renewing is no news
            taken = holder is not None
            detail = {"from": holder} if taken else {}
            acts.note(conn, escalation=escalation, kind="taken_from" if taken else "claimed", by=user, detail=detail)


def claim_next(conn: Connection[Any], *, user: int) -> int | None:
    """Claim the open escalation with the oldest target that nobody holds, and return it; two reviewers never get the same."""
    with conn.transaction():
        row = conn.execute(
            "SELECT id FROM public.escalations_escalation"
            " WHERE (state = 'open' OR (state = 'claimed' AND claimed_until <= now())) AND requested_by IS DISTINCT FROM %s"
            " AND (snoozed_until IS NULL OR snoozed_until <= now()) ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED",
            (user,),
        ).fetchone()
        if row:
            claim(conn, escalation=row[0], user=user)
    return int(row[0]) if row else None


def release(conn: Connection[Any], *, escalation: int, user: int) -> None:
    """Give one's own claim back; nothing changes when it is somebody else's or nobody's by now."""
    with conn.transaction():
        given = conn.execute(
            "UPDATE public.escalations_escalation SET state = 'open', claimed_by = NULL, claimed_until = NULL"
            " WHERE id = %s AND claimed_by = %s AND state = ANY(%s)",
            (escalation, user, policies.sources("release")),
        )
        if given.rowcount:
            acts.note(conn, escalation=escalation, kind="released", by=user)


def reassign(conn: Connection[Any], *, escalation: int, user: int, to: int) -> None:
    """Give an escalation to another reviewer, who holds it then, whoever holds it now.

    Raises `NotFound`, `AlreadyDecided`, `NoSuchReviewer`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="reassign")
        found = conn.execute(REVIEWS, (to,)).fetchone()
        if not (found and found[0]):
            raise facts.NoSuchReviewer
        _hold(conn, escalation=escalation, user=to)
        detail = {"to": to, "from": row["claimed_by"] if row["held"] else None}
        acts.note(conn, escalation=escalation, kind="reassigned", by=user, detail=detail)


def snooze(conn: Connection[Any], *, escalation: int, user: int, until: datetime) -> None:
    """Put an escalation aside for everybody until that time; its target stays. A claim of one's own ends.

    Raises `NotFound`, `AlreadyDecided`, `HeldByAnother`, `NotThen`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="snooze")
        rows.check_free(conn, row=row, user=user)
        (now,) = conn.execute("SELECT now()").fetchone() or (until,)
        if not now < until <= now + LONGEST_SLEEP or (row["expires_at"] and until >= row["expires_at"]):
            raise facts.NotThen
        conn.execute(
            "UPDATE public.escalations_escalation SET state = 'open', claimed_by = NULL, claimed_until = NULL,"
            " snoozed_until = %s, snoozed_by = %s WHERE id = %s",
            (until, user, escalation),
        )
        acts.note(conn, escalation=escalation, kind="snoozed", by=user, detail={"until": until.isoformat()})


def wake_up(conn: Connection[Any], *, escalation: int, user: int) -> None:
    """Show an escalation again before its time; at its time it wakes up by itself. Raises `NotFound`, `AlreadyDecided`."""
    with conn.transaction():
        rows.locked(conn, escalation=escalation, verb="wake")
        woken = conn.execute(
            "UPDATE public.escalations_escalation SET snoozed_until = NULL, snoozed_by = NULL"
            " WHERE id = %s AND snoozed_until IS NOT NULL",
            (escalation,),
        )
        if woken.rowcount:
            acts.note(conn, escalation=escalation, kind="woken", by=user)


def _hold(conn: Connection[Any], *, escalation: int, user: int) -> None:
    conn.execute(
        "UPDATE public.escalations_escalation SET state = 'claimed', claimed_by = %s, claimed_until = now() + %s,"
        " snoozed_until = NULL, snoozed_by = NULL WHERE id = %s",
        (user, LEASE, escalation),
    )
