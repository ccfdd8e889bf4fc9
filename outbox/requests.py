"""What people ask of a message: withdraw it before it is sent, or try a dead one again. Pages record it, the worker does it."""

from collections.abc import Callable
from typing import Any

import psycopg
import structlog
from psycopg import Connection
from psycopg.rows import dict_row

from outbox import settling, transitions
from outbox.leases import Row
from outbox.messages import GIVE_UP_AFTER
from outbox.outcomes import Outcome
from outbox.transitions import Event

log = structlog.get_logger()

ASK = """
INSERT INTO public.outbox_request (message_id, kind, reason, requested_by)
SELECT id, %(kind)s, %(reason)s, %(user)s FROM public.outbox_message WHERE id = %(message)s AND {allowed}
ON CONFLICT DO NOTHING
"""
ALLOWED = {
    "cancel": "state IN ('ready', 'leased') AND first_sent_at IS NULL",
    "replay": "state = 'dead' AND NOT compensation_needed",
}
OPEN = """
SELECT id, message_id, kind FROM public.outbox_request WHERE carried_out_at IS NULL AND id > %s ORDER BY id LIMIT 1
FOR UPDATE SKIP LOCKED
"""
DONE = "UPDATE public.outbox_request SET carried_out_at = now(), outcome = %s WHERE id = %s"
REPLAY = """
UPDATE public.outbox_message
SET state = %(state)s, attempts = 0, next_attempt_at = now(), give_up_at = now() + %(give_up_after)s, last_error = NULL
WHERE id = %(message)s AND state = ANY(%(sources)s) AND first_sent_at IS NOT DISTINCT FROM %(first_sent_at)s
  AND NOT compensation_needed
"""


class NotPossible(Exception):
    """The message's state does not allow this, or the same was asked before and is not done yet."""


def ask(conn: Connection[Any], *, message: int, kind: str, reason: str, user: int) -> None:
    """Record a request in the caller's transaction; raise NotPossible. Ring outbox.deliver after the commit."""
    given = {"message": message, "kind": kind, "reason": reason, "user": user}
    asked = conn.execute(ASK.format(allowed=ALLOWED[kind]), given)
    if asked.rowcount != 1:
        raise NotPossible(kind)


def carry_out(conn: Connection[Any]) -> int:
    """Do what open requests ask for, each in a transaction of its own, and return how many were done."""
    last, done = 0, 0
    while True:
        try:
            with conn.transaction():
                request = _next(conn, after=last)
                if request is None:
                    return done
                last = request["id"]
                done += _do(conn, request)
        except psycopg.OperationalError:
            raise
        except Exception:  # one request must not keep the others waiting
            log.exception("outbox.request.failed", request=last)


def _next(conn: Connection[Any], *, after: int) -> Row | None:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(OPEN, (after,)).fetchone()


def _do(conn: Connection[Any], request: Row) -> bool:
    """Carry one request out and return True; False leaves it open, because a worker has the message just now."""
    with conn.cursor(row_factory=dict_row) as cursor:
        query = "SELECT * FROM public.outbox_message WHERE id = %s FOR UPDATE"
        message = cursor.execute(query, (request["message_id"],)).fetchone()
    assert message is not None  # a foreign key says so
    if message["state"] == "leased" and message["first_sent_at"] is None:
        return False
    verbs: dict[str, Callable[..., str]] = {"cancel": _cancel, "replay": _replay}
    outcome = verbs[request["kind"]](conn, message)
    conn.execute(DONE, (outcome, request["id"]))
    log.info("outbox.request.carried_out", request=request["id"], message=message["id"], kind=request["kind"], outcome=outcome)
    return True


def _cancel(conn: Connection[Any], message: Row) -> str:
    withdrawn = settling.adopt(conn, message=message, outcome=Outcome(kind="cancelled"), source="person")
    return "withdrawn" if withdrawn else f"too late: {message['state']}"


def _replay(conn: Connection[Any], message: Row) -> str:
    """Put a dead message back: to be sent if nothing ever left, else to be looked up first."""
    event = Event.REPLAY_UNSENT if message["first_sent_at"] is None else Event.REPLAY_SENT
    given = {
        "message": message["id"],
        "state": transitions.TARGETS[event][1],
        "sources": transitions.sources(event),
        "first_sent_at": message["first_sent_at"],
        "give_up_after": GIVE_UP_AFTER,
    }
    return "put back" if conn.execute(REPLAY, given).rowcount == 1 else f"not possible: {message['state']}"
