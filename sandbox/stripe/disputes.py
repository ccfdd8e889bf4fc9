"""Disputes: a bank takes a card's side, and the charge can no longer be refunded. The sandbox moves no money for them."""

from sandbox.stripe import events, objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, text
from sandbox.stripe.refusals import Refused, unexpected
from sandbox.stripe.store import Transaction, new_id

LIST: Schema = objects.LIST | {"charge": Field(read=text), "payment_intent": Field(read=text)}


def begin(tx: Transaction, charge: Json) -> Json:
    """Dispute a charge and return it as it is then."""
    charge = tx.put(charge | {"disputed": True})
    dispute = tx.put(
        {
            "id": new_id("du"),
            "object": "dispute",
            "amount": charge["amount"],
            "balance_transactions": [],
            "charge": charge["id"],
            "created": tx.now,
            "currency": charge["currency"],
            "evidence_details": {"due_by": None, "has_evidence": False, "past_due": False, "submission_count": 0},
            "is_charge_refundable": False,
            "livemode": False,
            "metadata": {},
            "payment_intent": charge["payment_intent"],
            "reason": "fraudulent",
            "status": "needs_response",
        }
    )
    events.emit(tx, "charge.dispute.created", dispute)
    return charge


def no_refund(charge: Json) -> Refused:
    """Return the refusal to refund a disputed charge.

    Stripe lists two codes and does not say which comes when: here a card's is charged back, a bank debit is a disputed payment.
    """
    if charge["payment_method_details"]["type"] == "card":
        return unexpected(f"Charge {charge['id']} has been charged back; cannot issue a refund.", code="charge_disputed")
    return unexpected("You cannot refund a disputed payment.", code="refund_disputed_payment")


def get(tx: Transaction, params: Json, dispute_id: str) -> Json:
    """Return one dispute."""
    return objects.fetch(tx, "dispute", dispute_id, in_path=True)


def list_disputes(tx: Transaction, params: Json) -> Json:
    """Return a page of disputes."""
    filters = {name: params[name] for name in ("charge", "payment_intent")}
    return objects.page(tx, "dispute", params, url="/v1/disputes", **filters)
