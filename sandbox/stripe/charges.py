"""Charges: one per attempt on a payment intent, at most one of which succeeds."""

from sandbox.stripe import events, money, objects
from sandbox.stripe.cards import Decline
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, text
from sandbox.stripe.store import Cause, Transaction, new_id

LIST: Schema = objects.LIST | {"customer": Field(read=text), "payment_intent": Field(read=text)}


def make(tx: Transaction, *, intent: Json, method: Json) -> Json:
    """Write a charge that has not ended yet."""
    return tx.put(
        {
            "id": new_id("ch"),
            "object": "charge",
            "amount": intent["amount"],
            "amount_captured": 0,
            "amount_refunded": 0,
            "balance_transaction": None,
            "billing_details": method["billing_details"],
            "captured": False,
            "created": tx.now,
            "currency": intent["currency"],
            "customer": intent["customer"],
            "description": intent["description"],
            "disputed": False,
            "failure_code": None,
            "failure_message": None,
            "livemode": False,
            "metadata": intent["metadata"],
            "outcome": None,
            "paid": False,
            "payment_intent": intent["id"],
            "payment_method": method["id"],
            "payment_method_details": {"type": method["type"], method["type"]: method[method["type"]]},
            "receipt_email": intent["receipt_email"],
            "receipt_number": None,
            "refunded": False,
            "statement_descriptor": intent["statement_descriptor"],
            "status": "pending",
        }
    )


def succeed(tx: Transaction, charge: Json, *, cause: Cause) -> Json:
    """Let the money of a charge move."""
    outcome = {
        "network_status": "approved_by_network",
        "reason": None,
        "seller_message": "Payment complete.",
        "type": "authorized",
    }
    charge |= {"status": "succeeded", "paid": True, "captured": True, "amount_captured": charge["amount"], "outcome": outcome}
    tx.put(charge)
    money.record(tx, kind="charge", source=charge, charge=charge, amount=charge["amount"], cause=cause)
    events.emit(tx, "charge.succeeded", charge)
    return charge


def fail(tx: Transaction, charge: Json, *, decline: Decline) -> Json:
    """End a charge without money."""
    outcome = {"network_status": "declined_by_network", "reason": decline.decline_code, "type": "issuer_declined"}
    charge |= {"status": "failed", "failure_code": decline.code, "failure_message": decline.message, "outcome": outcome}
    tx.put(charge)
    events.emit(tx, "charge.failed", charge)
    return charge


def refunded(tx: Transaction, charge: Json, *, amount: int) -> Json:
    """Count a refund on its charge; a negative amount gives the cap back."""
    total = charge["amount_refunded"] + amount
    return tx.put(charge | {"amount_refunded": total, "refunded": total == charge["amount"]})


def get(tx: Transaction, params: Json, charge_id: str) -> Json:
    """Return one charge."""
    return objects.fetch(tx, "charge", charge_id, in_path=True)


def list_charges(tx: Transaction, params: Json) -> Json:
    """Return a page of charges."""
    filters = {name: params[name] for name in ("customer", "payment_intent")}
    return objects.page(tx, "charge", params, url="/v1/charges", **filters)
