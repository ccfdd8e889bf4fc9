"""The provider's events: verified and stored once by web, processed later by the outbox worker. Any order, any number.

An event is a hint to look: what counts is the object as the provider has it now.
"""

import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
import structlog
from django.conf import settings
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from ledger import faults
from outbox import adoptions, bell, gateway, live, lookups, transitions
from outbox.endings import Delivery
from outbox.leases import Row

Pool = ConnectionPool[Connection[Any]]
log = structlog.get_logger()

# Events about objects that a message of ours waits for.
TYPES = frozenset(
    {
        "payment_intent.succeeded",
        "payment_intent.payment_failed",
        "payment_intent.canceled",
        "refund.created",
        "refund.updated",
        "refund.failed",
        "charge.refund.updated",
        "credit_note.created",
        "credit_note.voided",
    }
)
STORE = """
INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload) VALUES (%s, %s, %s, %s)
ON CONFLICT (event_id) DO NOTHING
"""
# The next event that is due; counting now spaces the tries of one whose look-up is not answered.
TAKE = """
UPDATE public.outbox_webhook_event SET attempts = attempts + 1
WHERE event_id = (
    SELECT event_id FROM public.outbox_webhook_event
    WHERE processed_at IS NULL AND received_at + make_interval(secs => 5 * attempts * attempts) <= now()
    ORDER BY received_at, event_id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING event_id, type, object_id, payload, attempts
"""
PROCESSED = "UPDATE public.outbox_webhook_event SET processed_at = now(), outcome = %s WHERE event_id = %s"
# Two ids of one change show the object alike. What was passed over, or is to be tried again, is no reason to pass over another.
TWIN = """
SELECT event_id FROM public.outbox_webhook_event
WHERE object_id = %(object_id)s AND type = %(type)s AND event_id <> %(event_id)s
  AND payload #> '{data,object}' = %(about)s AND split_part(outcome, ':', 1) IN ('settled', 'taken back')
LIMIT 1
"""
OURS = "SELECT * FROM public.outbox_message WHERE uid = %(uid)s OR (%(uid)s::uuid IS NULL AND provider_id = %(object_id)s)"
ID = re.compile(r"\w+", re.ASCII)  # of an object that a message of ours can have made; look-ups put it into an address
UNKNOWN_MODE = "No mode is known to take events of: STRIPE_MODE is not set."
ANOTHER = "another object:"  # an outcome that begins so has a scan look at once, see escalations/reconciling/scans.py
MOST_ATTEMPTS = 20  # over about half an hour; look-ups go on for what this gives up


class Malformed(Exception):
    """The event lacks what it is known by, or holds what no database stores."""


class WrongMode(Exception):
    """The event is of the mode that our key is not of, or does not say."""


def store(conn: Connection[Any], *, event: Mapping[str, Any]) -> bool:
    """Keep a verified event of our mode and return whether it is new; raise Malformed or WrongMode.

    An event about an object without an id, as a balance is, is kept too: refusing it would have it sent for days.
    """
    fields = (event.get("id"), event.get("type"))
    if not all(is_name(field) for field in fields):
        raise Malformed("The event has no id or no type.")
    if not is_of_mode(event, settings.STRIPE_MODE):
        raise WrongMode(f"The event is not of the {settings.STRIPE_MODE} mode." if settings.STRIPE_MODE else UNKNOWN_MODE)
    known = about(event).get("id")
    try:
        return conn.execute(STORE, (*fields, known if is_name(known) else "", Jsonb(dict(event)))).rowcount == 1
    except (psycopg.DataError, UnicodeEncodeError) as error:  # a NUL or half a surrogate pair in a text
        raise Malformed("The event holds characters that cannot be stored.") from error


def is_of_mode(event: Mapping[str, Any], mode: str) -> bool:
    """Return whether an event says that it is of this mode, `live` or `test`; of no mode when none is known."""
    return event.get("livemode") is {"live": True, "test": False}.get(mode, ...)


def is_name(field: Any) -> bool:
    """Return whether something in an event is an id or a type."""
    return isinstance(field, str) and 0 < len(field) <= 255


def about(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that an event is about, or an empty mapping if it has none."""
    data = event.get("data")
    found = data.get("object") if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def process_due(pool: Pool, *, go_on: Callable[[], bool]) -> int:
    """Process stored events until none is due or `go_on` says no, and return how many were taken."""
    taken = 0
    while go_on():
        with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            event = cursor.execute(TAKE).fetchone()
        if event is None:
            break
        taken += 1
        faults.reach("webhook.taken")
        if outcome := _tried(pool, event):
            faults.reach("webhook.adopted")
            with pool.connection() as conn:
                conn.execute(PROCESSED, (outcome, event["event_id"]))
            if outcome.startswith(ANOTHER):
                bell.ring("outbox.reconcile")
            log.info("outbox.webhook.processed", event_id=event["event_id"], type=event["type"], outcome=outcome)
    return taken


def _tried(pool: Pool, event: Row) -> str | None:
    """Return what became of an event, or None if it is to be tried again; one event must not keep the others waiting."""
    try:
        outcome = _process(pool, event)
    except psycopg.OperationalError:
        raise
    except Exception:
        log.exception("outbox.webhook.failed", event_id=event["event_id"])
        outcome = None
    return outcome or ("given up" if event["attempts"] >= MOST_ATTEMPTS else None)


def _process(pool: Pool, event: Row) -> str | None:
    if event["type"] not in TYPES:
        return "ignored"
    if not is_of_mode(event["payload"], live.mode(settings.STRIPE_API_KEY)):
        return "wrong mode"  # whoever took it in was told another mode than that of our key
    with pool.connection() as conn:
        message = _message(conn, event)
        twin = message and _twin(conn, event)
    if message is None:
        return "not ours"
    if twin:
        return f"same as {twin}"
    if (event["payload"].get("account") or "") != message["account"]:
        return "another account"
    if message["provider_id"] not in (None, event["object_id"]):
        return _another(event)
    if _says_nothing_new(message, event):
        return f"already {message['state']}"
    return _adopt(pool, message, event)


def _twin(conn: Connection[Any], event: Row) -> str | None:
    """Return the id of another event that told of the same change and was heeded: the provider may make two of one."""
    found = conn.execute(TWIN, event | {"about": Jsonb(dict(about(event["payload"])))}).fetchone()
    return found and str(found[0])


def _another(event: Row) -> str:
    """Return what to call an event about a second object of a message, such as one whose creation got no answer.

    Money may have moved twice unless that one has ended: the next scan asks the provider, and is due at once.
    """
    status = about(event["payload"]).get("status")
    if not isinstance(status, str) or not ID.fullmatch(status) or status in transitions.TAKEN_BACK:
        return "another object"
    return f"{ANOTHER} {status}"


def _says_nothing_new(message: Row, event: Row) -> bool:
    """Return whether a finished message needs no look: what the event shows of the object is how the message ended."""
    status = about(event["payload"]).get("status")
    if message["state"] == "succeeded":
        return status not in transitions.TAKEN_BACK or status == message["provider_status"]
    return message["state"] in transitions.FINAL and status not in transitions.DONE


def _message(conn: Connection[Any], event: Row) -> Row | None:
    """Return the message that an event's object names in its metadata, else the one that knows its id."""
    metadata = about(event["payload"]).get("metadata")
    if not ID.fullmatch(event["object_id"]) or not isinstance(metadata, Mapping | None):
        return None
    named = (metadata or {}).get(lookups.UID)
    try:
        uid = uuid.UUID(named) if named is not None else None
    except (ValueError, AttributeError, TypeError):
        return None
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(OURS, {"uid": uid, "object_id": event["object_id"]}).fetchone()


def _adopt(pool: Pool, message: Row, event: Row) -> str | None:
    """Look at the object as it is now, and take over what the provider says of it, be it late."""
    started = time.monotonic()

    def get(path: str, params: Mapping[str, Any]) -> Any:
        return gateway.get(path, params, account=message["account"], version=message["api_version"])

    finding = lookups.find(get, message=message, provider_id=event["object_id"])
    if finding.kind == "unanswered":
        return None
    if finding.kind != "known" or finding.outcome.kind not in ("succeeded", "rejected"):
        return f"noted: {finding.outcome.provider_status or finding.outcome.error or finding.kind}"
    took = round((time.monotonic() - started) * 1000)
    delivery = Delivery(step="webhook", outcome=finding.outcome, duration_ms=took)
    with pool.connection() as conn:
        after, new = adoptions.take(conn, message=message["id"], outcome=finding.outcome, source="webhook", delivery=delivery)
    if not new:
        return f"already {after['state']}"
    if after["state"] == "succeeded" and finding.outcome.kind == "rejected":
        log.error("outbox.webhook.contradicted", message=message["id"], event_id=event["event_id"], state=after["state"])
        return f"taken back: {finding.outcome.provider_status}"
    return f"settled: {after['state']}"
