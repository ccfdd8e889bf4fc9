"""Refunds: up to the amount of their charge, at once or later, some of which fail in the end."""

from sandbox.stripe import cards, charges, currencies, disputes, events, money, objects, schedule
from sandbox.stripe.attempts import SETTLES_AFTER
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, choice, integer, metadata, text
from sandbox.stripe.refusals import invalid, unexpected
from sandbox.stripe.store import Transaction, new_id

CREATE: Schema = {
    "charge": Field(read=text),
    "payment_intent": Field(read=text),
    "amount": Field(read=integer(minimum=1)),
    "metadata": Field(read=metadata, default={}),
    "reason": Field(read=choice("duplicate", "fraudulent", "requested_by_customer")),
}
LIST: Schema = objects.LIST | {"charge": Field(read=text), "payment_intent": Field(read=text)}
LOSES = ("failed", "canceled")  # ends that give the money back to us and the cap back to the charge


def create(tx: Transaction, params: Json) -> Json:
    """Send money of a charge back; more than is left of it is refused."""
    charge = _charge(tx, params)
    amount = _amount(charge, params["amount"])
    how = cards.behind(charge["payment_method_details"]).refunds
    refund = tx.put(_new(tx, charge, amount=amount, params=params, pending=how == "pending"))
    charge = charges.refunded(tx, charge, amount=amount)
    money.record(tx, kind="refund", source=refund, charge=charge, amount=-amount, cause=tx.cause)
    if how != "succeeded":
        schedule.later(tx, refund["id"], status="succeeded" if how == "pending" else "failed", seconds=SETTLES_AFTER)
    events.emit(tx, "refund.created", refund)
    events.emit(tx, "charge.refunded", charge)
    return refund


def _charge(tx: Transaction, params: Json) -> Json:
    charge_id = params["charge"]
    if params["payment_intent"]:
        intent = objects.fetch(tx, "payment_intent", params["payment_intent"], param="payment_intent")
        if charge_id not in (None, intent["latest_charge"]):
            raise unexpected("The charge is not one of this payment intent.", param="charge")
        charge_id = intent["latest_charge"]
        if intent["status"] != "succeeded":
            raise unexpected(f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund.")
    if not charge_id:
        raise invalid("One of the following params should be provided for this request: payment_intent or charge.")
    charge = objects.fetch(tx, "charge", charge_id, param="charge")
    if charge["status"] != "succeeded":
        raise unexpected(f"Charge {charge_id} has not succeeded.", code="charge_not_refundable")
    if charge["disputed"]:
        raise disputes.no_refund(charge)
    return charge


def _amount(charge: Json, wanted: int | None) -> int:
    left: int = charge["amount"] - charge["amount_refunded"]
    if left == 0:
        raise unexpected(f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
    step = currencies.step(charge["currency"])
    if wanted and wanted % step:
        raise unexpected(f"Invalid amount: {charge['currency']} amounts must be a multiple of {step}.", param="amount")
    if wanted and wanted > left:
        asked, rest = (currencies.display(amount, charge["currency"]) for amount in (wanted, left))
        # Stripe sends no code with this one.
        raise unexpected(f"Refund amount ({asked}) is greater than unrefunded amount on charge ({rest})", param="amount")
    return wanted or left


def _new(tx: Transaction, charge: Json, *, amount: int, params: Json, pending: bool) -> Json:
    kind = charge["payment_method_details"]["type"]
    refund = {
        "id": new_id("re"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": None,
        "charge": charge["id"],
        "created": tx.now,
        "currency": charge["currency"],
        "destination_details": {"type": kind, kind: {}},
        "metadata": params["metadata"],
        "payment_intent": charge["payment_intent"],
        "reason": params["reason"],
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": "pending" if pending else "succeeded",
        "transfer_reversal": None,
    }
    return refund | ({"pending_reason": "processing"} if pending else {})


def settle(tx: Transaction, refund: Json, *, status: str) -> Json:
    """Change a refund's status; one that fails or is cancelled returns the money and the cap."""
    cause = schedule.take(tx, refund["id"])
    refund = {name: value for name, value in refund.items() if name != "pending_reason"} | {"status": status}
    if status == "failed":
        refund["failure_reason"] = "expired_or_canceled_card"
    if status == "requires_action":
        schedule.later(tx, refund["id"], status=None, seconds=None)
    tx.put(refund)
    if status in LOSES:
        charge = objects.fetch(tx, "charge", refund["charge"])
        charge = charges.refunded(tx, charge, amount=-refund["amount"])
        money.record(tx, kind=f"refund_{status}", source=refund, charge=charge, amount=refund["amount"], cause=cause)
    for kind in ("refund.updated", "charge.refund.updated"):  # the same news twice, as Stripe sends it
        events.emit(tx, kind, refund)
    if status == "failed":
        events.emit(tx, "refund.failed", refund)
    return refund


def cancel(tx: Transaction, params: Json, refund_id: str) -> Json:
    """Cancel a refund that waits for the customer: Stripe cancels no other."""
    refund = objects.fetch(tx, "refund", refund_id, in_path=True)
    if refund["status"] != "requires_action":
        raise unexpected(
            f"You cannot cancel this refund because it has a status of {refund['status']}; only requires_action can be."
        )
    return settle(tx, refund, status="canceled")


def get(tx: Transaction, params: Json, refund_id: str) -> Json:
    """Return one refund."""
    return objects.fetch(tx, "refund", refund_id, in_path=True)


def list_refunds(tx: Transaction, params: Json) -> Json:
    """Return a page of refunds."""
    filters = {name: params[name] for name in ("charge", "payment_intent")}
    return objects.page(tx, "refund", params, url="/v1/refunds", **filters)
