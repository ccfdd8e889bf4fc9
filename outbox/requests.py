"""What people ask of a message: pages record it, the outbox worker does it, and says in the request what came of it."""

from collections.abc import Callable
from typing import Any

import psycopg
import structlog
from psycopg import Connection
from psycopg.rows import dict_row

from ledger import faults
from ledger.refusals import Refusal
from outbox import adoptions, bell, exits, handlers
from outbox.exits import NotNow
from outbox.leases import Row

log = structlog.get_logger()

ASK = """
INSERT INTO public.outbox_request (message_id, kind, reason, requested_by, escalation)
SELECT id, %(kind)s, %(reason)s, %(user)s, %(escalation)s FROM public.outbox_message WHERE id = %(message)s AND ({allowed})
ON CONFLICT DO NOTHING
"""
POSSIBLE = "SELECT {each} FROM public.outbox_message WHERE id = %(message)s"
MATTERS = "repeat <> 'harmless'"
AT_PROVIDER = f"{MATTERS} AND destination = 'stripe'"  # only there it can be asked what became of something
ALLOWED = {
    "cancel": "state IN ('ready', 'leased') AND first_sent_at IS NULL",
    "replay": "state = 'dead' AND NOT compensation_needed",
    "look_up": f"first_sent_at IS NOT NULL AND {AT_PROVIDER}",
    "adopt": AT_PROVIDER,  # of what was not sent, too: there is nothing to take over, but books may stand otherwise
    "resend": "state IN ('uncertain', 'dead') AND first_sent_at IS NOT NULL AND repeat = 'keyed' AND NOT compensation_needed"
    " AND (key_deadline IS NULL OR key_deadline > now())",
    "settle_rejected": f"state IN ('uncertain', 'dead') AND {AT_PROVIDER}",
    "compensate": f"(state = 'dead' OR compensation_needed) AND {MATTERS}",
    "refund": "state IN ('uncertain', 'dead', 'rejected', 'succeeded', 'cancelled') AND topic = ANY(%(takers)s)",
}
# Those first for which nobody has to be asked: a silent provider must not keep what can still be undone waiting.
OPEN = """
SELECT r.id, r.message_id, r.kind, r.kind = ANY(%(asking)s) AS asks, r.reason, r.requested_by,
    now() - r.requested_at AS age, m.thread
FROM public.outbox_request r JOIN public.outbox_message m ON m.id = r.message_id
WHERE r.carried_out_at IS NULL AND (r.kind = ANY(%(asking)s), r.id) > (%(asks)s, %(id)s)
ORDER BY r.kind = ANY(%(asking)s), r.id LIMIT 1
"""
HELD = "SELECT id FROM public.outbox_request WHERE id = %s AND carried_out_at IS NULL FOR UPDATE SKIP LOCKED"
DONE = "UPDATE public.outbox_request SET carried_out_at = clock_timestamp(), outcome = %s WHERE id = %s"


class NotPossible(Exception):
    """The message's state does not allow this, or the same was asked before and is not done yet."""


def ask(conn: Connection[Any], *, message: int, kind: str, reason: str, user: int, escalation: int | None = None) -> None:
    """Record a request in the caller's transaction; raise NotPossible. Call `announce` after the commit.

    `escalation` is the question whose decision it is.
    """
    given = {"message": message, "kind": kind, "reason": reason, "user": user, "escalation": escalation}
    asked = conn.execute(ASK.format(allowed=ALLOWED[kind]), given | {"takers": handlers.can_give_back()})
    if asked.rowcount != 1:
        raise NotPossible(kind)


def announce() -> None:
    """Wake the worker for what was asked; call it after the commit. The row stays if nobody hears it."""
    faults.reach("request.asked")
    bell.ring("outbox.deliver")


def possible(conn: Connection[Any], *, message: int) -> list[str]:
    """Return the kinds that the message's state allows to be asked for, for pages that offer them."""
    each = ", ".join(f"coalesce({allowed}, false)" for allowed in ALLOWED.values())
    given = {"message": message, "takers": handlers.can_give_back()}
    row = conn.execute(POSSIBLE.format(each=each), given).fetchone()
    return [kind for kind, allowed in zip(ALLOWED, row, strict=True) if allowed] if row else []


def carry_out(conn: Connection[Any], *, go_on: Callable[[], bool] = lambda: True) -> int:
    """Do what open requests ask for, each in a transaction of its own, and return how many were done.

    `conn` is in autocommit mode: the provider is asked outside any transaction. `go_on` says whether to take another one.
    """
    last: Row = {"asks": False, "id": 0}
    done = 0
    while go_on():
        request = _next(conn, after=last)
        if request is None:
            break
        last = request
        try:
            done += _do(conn, request)
        except psycopg.OperationalError:
            raise
        except Exception:  # one request must not keep the others waiting
            log.exception("outbox.request.failed", request=last["id"])
    return done


def _next(conn: Connection[Any], *, after: Row) -> Row | None:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(OPEN, {"asking": list(exits.ASKS_PROVIDER), "asks": after["asks"], "id": after["id"]}).fetchone()


def _do(conn: Connection[Any], request: Row) -> bool:
    """Carry one request out and return True; False leaves it open, because a worker has the message, or it, just now."""
    try:
        asked = exits.prepare(conn, request=request)
    except NotNow:
        return False
    faults.reach("request.taken", thread=request["thread"])
    with conn.transaction():
        if conn.execute(HELD, (request["id"],)).fetchone() is None:
            return False
        message = adoptions.locked(conn, message=request["message_id"])
        if exits.is_in_work(message, kind=request["kind"]):
            return False
        outcome = _carried_out(conn, message=message, request=request, asked=asked)
        conn.execute(DONE, (outcome, request["id"]))
        faults.reach("request.carried", thread=request["thread"])
    faults.reach("request.done", thread=request["thread"])
    log.info("outbox.request.carried_out", request=request["id"], message=message["id"], kind=request["kind"], outcome=outcome)
    return True


def _carried_out(conn: Connection[Any], *, message: Row, request: Row, asked: exits.Asked | None) -> str:
    """Return what was done, or why nothing was: then nothing has changed."""
    try:
        with conn.transaction():
            return exits.EXITS[request["kind"]](conn, message=message, request=request, asked=asked)
    except (exits.Impossible, Refusal) as error:
        why = str(error)
    except psycopg.IntegrityError as error:  # of what no rule of ours foresaw, the database is the judge
        why = f"the books do not allow it ({error.diag.constraint_name})"
    if asked is not None:  # that the provider was asked is evidence all the same
        adoptions.note(conn, message=message, outcome=asked.outcome, delivery=asked.delivery)
    return f"{exits.NOT_POSSIBLE}{why}"
