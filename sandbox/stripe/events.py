"""Events: what happened to an object, as it was then; each is also promised to the webhook address."""

import json

from sandbox.stripe import objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, boolean, text, words
from sandbox.stripe.store import ACCOUNT, Transaction, new_id

API_VERSION = "2026-10-28.endive"
LISTED_FOR = 30 * 24 * 60 * 60  # seconds
LIST: Schema = objects.LIST | {
    "type": Field(read=text),
    "types": Field(read=words),
    "delivery_success": Field(read=boolean),
}


def emit(tx: Transaction, kind: str, subject: Json) -> None:
    """Write an event about an object as it is now, and its delivery when there is a webhook address."""
    event: Json = {
        "id": new_id("evt"),
        "object": "event",
        "api_version": API_VERSION,
        "created": tx.now,
        "data": {"object": subject},
        "livemode": False,
        "pending_webhooks": int(tx.ring is not None),
        "request": {"id": tx.cause.request_id, "idempotency_key": tx.cause.idempotency_key},
        "type": kind,
    }
    tx.put(event if tx.account == ACCOUNT else event | {"account": tx.account})
    deliver(tx, event["id"])


def deliver(tx: Transaction, event_id: str) -> None:
    """Promise one delivery of an event, if there is an address; the sender reads it once this transaction has ended."""
    if tx.ring:
        tx.execute("INSERT INTO delivery (event, due) VALUES (?, ?)", (event_id, tx.now))
        tx.ring()


def get(tx: Transaction, params: Json, event_id: str) -> Json:
    """Return one event, however old."""
    return objects.fetch(tx, "event", event_id, in_path=True)


def list_events(tx: Transaction, params: Json) -> Json:
    """Return a page of the last 30 days' events."""
    success = params["delivery_success"]
    return objects.page(
        tx,
        "event",
        params,
        url="/v1/events",
        since=tx.now - LISTED_FOR,
        type=params["type"],
        types=None if params["types"] is None else json.dumps(params["types"]),
        undelivered=None if success is None else int(not success),
    )
