"""Scans as rows: a page, a decision or the time asks for one, the outbox worker takes it and fills it in."""

from datetime import timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from escalations import policies

EVERY = timedelta(minutes=10)  # beat's own scan of everything
AT_PROVIDER = timedelta(hours=1)  # between two sweeps of the provider's objects that nobody asked for
LOST = timedelta(minutes=10)  # after which a scan of everything is taken from a worker that never finished it
LOST_CASE = timedelta(minutes=2)  # after which one of what was settled is: it takes no longer than asking about one object
AGAIN = timedelta(seconds=30)  # after which one that could not look, such as without the provider, is tried again
Row = dict[str, Any]

TAKE = """
UPDATE public.escalations_scan SET started_at = now() WHERE id = (
    SELECT id FROM public.escalations_scan WHERE finished_at IS NULL
      AND (started_at IS NULL OR started_at < now()
           - CASE WHEN error <> '' THEN %(again)s WHEN escalation IS NULL THEN %(lost)s ELSE %(lost_case)s END)
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, escalation, asked_by, started_at
"""
# One that was asked for and is not finished does for beat, too.
BY_BEAT = """
INSERT INTO public.escalations_scan (asked_by)
SELECT NULL WHERE NOT EXISTS (
    SELECT FROM public.escalations_scan WHERE escalation IS NULL AND (finished_at IS NULL OR asked_at > now() - %s))
"""
# What was decided is done, as far as the outbox and the conversation are concerned: is the disagreement gone?
AFTER_EXITS = """
INSERT INTO public.escalations_scan (escalation)
SELECT e.id FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id
WHERE e.state = ANY(ARRAY['decided', 'resumed']) AND e.interrupt_id IS NULL AND d.kind = ANY(%s)
  AND CASE WHEN d.kind = 'replay_thread' THEN e.state = 'resumed' ELSE NOT EXISTS (
      SELECT FROM public.outbox_request r WHERE r.message_id = (e.payload ->> 'message_id')::bigint AND r.escalation = e.id
        AND r.carried_out_at IS NULL) END
ON CONFLICT DO NOTHING
"""
SWEPT = """
SELECT EXISTS (SELECT FROM public.escalations_scan WHERE escalation IS NULL AND finished_at > now() - %s
               AND counts ? 'days at the provider')
"""
# Since the last sweep an event told of a second object of a message: its money may have moved twice.
TOLD = """
SELECT EXISTS (SELECT FROM public.outbox_webhook_event WHERE outcome LIKE 'another object:%' AND processed_at > coalesce(
    (SELECT max(started_at) FROM public.escalations_scan
     WHERE escalation IS NULL AND finished_at IS NOT NULL AND counts ? 'days at the provider'), '-infinity'))
"""
FINISH = """
UPDATE public.escalations_scan SET finished_at = now(), counts = %(counts)s, found = %(found)s, opened = %(opened)s,
    cleared = %(cleared)s, error = %(error)s
WHERE id = %(id)s
"""


def ask(conn: Connection[Any], *, user: int) -> None:
    """Ask for a scan of everything in the caller's transaction; ring outbox.reconcile after its commit."""
    conn.execute("INSERT INTO public.escalations_scan (asked_by) VALUES (%s)", (user,))


def plan(conn: Connection[Any]) -> None:
    """Ask for beat's own scan when its time has come, or the provider told of news, and for a look at what people settled."""
    conn.execute(BY_BEAT, (AGAIN if _told(conn) else EVERY,))
    conn.execute(AFTER_EXITS, (list(policies.EXITS),))


def take(conn: Connection[Any]) -> Row | None:
    """Take the oldest scan that nobody works on, or None."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(TAKE, {"lost": LOST, "lost_case": LOST_CASE, "again": AGAIN}).fetchone()


def begin(conn: Connection[Any]) -> Row:
    """Begin a scan of everything that nobody waits for, and return it."""
    query = "INSERT INTO public.escalations_scan (started_at) VALUES (now()) RETURNING id, escalation, asked_by, started_at"
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query).fetchone()
    assert row is not None
    return row


def finish(conn: Connection[Any], *, scan: int, counts: Row, found: int, opened: int, cleared: int, error: str) -> None:
    """Write down what a scan found."""
    given = {"id": scan, "counts": Jsonb(counts), "found": found, "opened": opened, "cleared": cleared, "error": error}
    conn.execute(FINISH, given)


def asks_provider(conn: Connection[Any], *, scan: Row) -> bool:
    """Return whether a scan of everything goes through the provider's objects: if a person wants it, after news, every hour."""
    (swept,) = conn.execute(SWEPT, (AT_PROVIDER,)).fetchone() or (False,)
    return scan["asked_by"] is not None or not swept or _told(conn)


def put_off(conn: Connection[Any], *, scan: int, error: str) -> None:
    """Leave a scan to be taken again a little later, with why it could not look."""
    conn.execute("UPDATE public.escalations_scan SET error = %s WHERE id = %s", (error, scan))


def _told(conn: Connection[Any]) -> bool:
    (told,) = conn.execute(TOLD).fetchone() or (False,)
    return bool(told)
