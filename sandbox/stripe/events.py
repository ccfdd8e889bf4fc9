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


class Unknown(Exception):
    """There is no such event; the text says so."""


def again(tx: Transaction, *, event_id: str) -> Json:
    """Promise one more delivery of an event of any account."""
    event = found(tx, event_id=event_id)
    deliver(tx, event["id"])
    return event


def twin(tx: Transaction, *, event_id: str) -> Json:
    """Write a second event about the same change, as Stripe sometimes does: its id is another one."""
    event = found(tx, event_id=event_id)
    made = tx.of(event.get("account", ACCOUNT)).put(event | {"id": new_id("evt")})
    deliver(tx, made["id"])
    return made


def found(tx: Transaction, *, event_id: str) -> Json:
    """Return an event of any account, or raise Unknown."""
    row = tx.execute("SELECT body FROM object WHERE id = ? AND kind = 'event'", (event_id,)).fetchone()
    if row is None:
        raise Unknown(f"There is no event {event_id}.")
    event: Json = json.loads(row["body"])
    return event


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
