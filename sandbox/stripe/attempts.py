"""One attempt to take the money of a payment intent, and its end: at once, later, or after the customer acted."""

from sandbox.stripe import cards, charges, disputes, events, objects, schedule
from sandbox.stripe.exchange import Json
from sandbox.stripe.refusals import declined
from sandbox.stripe.store import Cause, Transaction

SETTLES_AFTER = 60  # seconds of the sandbox's clock until a debit or a refund under way ends


def attempt(tx: Transaction, intent: Json, *, customer_present: bool) -> Json:
    """Charge the intent's payment method and return the intent; a decline raises 402 with everything kept."""
    method = objects.fetch(tx, "payment_method", intent["payment_method"])
    card = cards.behind(method)
    intent["last_payment_error"] = None
    if card.authentication and customer_present:
        return _ask(tx, intent)
    if card.settles != "at once":
        return _process(tx, intent, charge=charges.make(tx, intent=intent, method=method), card=card)
    charge = charges.make(tx, intent=intent, method=method)
    if decline := cards.AUTHENTICATION if card.authentication else card.decline:
        fail(tx, intent, charge=charge, decline=decline)
        raise declined(decline.error(), charge=charge["id"], intent=intent)
    return succeed(tx, intent, charge=charge, cause=tx.cause)


def _ask(tx: Transaction, intent: Json) -> Json:
    """Wait for the customer to authenticate; only a control call can do it for them."""
    schedule.later(tx, intent["id"], status=None, seconds=None)
    action = {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
    intent |= {"status": "requires_action", "next_action": action}
    tx.put(intent)
    events.emit(tx, "payment_intent.requires_action", intent)
    return intent


def _process(tx: Transaction, intent: Json, *, charge: Json, card: cards.Method) -> Json:
    """Leave a bank debit under way."""
    intent |= {"status": "processing", "latest_charge": charge["id"], "processing": {"type": card.type}}
    tx.put(intent)
    never = card.settles == "never"
    schedule.later(tx, intent["id"], status=None if never else card.settles, seconds=None if never else SETTLES_AFTER)
    events.emit(tx, "charge.pending", charge)
    events.emit(tx, "payment_intent.processing", intent)
    return intent


def succeed(tx: Transaction, intent: Json, *, charge: Json, cause: Cause) -> Json:
    """Take the money: final for this intent."""
    charges.succeed(tx, charge, cause=cause)
    intent |= {"status": "succeeded", "latest_charge": charge["id"], "amount_received": intent["amount"]}
    intent |= {"next_action": None, "processing": None}
    tx.put(intent)
    events.emit(tx, "payment_intent.succeeded", intent)
    if cards.behind(charge["payment_method_details"]).disputed:
        disputes.begin(tx, charge)
    return intent


def fail(tx: Transaction, intent: Json, *, charge: Json, decline: cards.Decline) -> Json:
    """Take no money: the intent asks for another payment method."""
    charges.fail(tx, charge, decline=decline)
    method = objects.fetch(tx, "payment_method", charge["payment_method"])
    error = {"type": "card_error", **decline.error(), "charge": charge["id"], "payment_method": method}
    intent |= {"status": "requires_payment_method", "latest_charge": charge["id"], "payment_method": None}
    intent |= {"last_payment_error": error, "next_action": None, "processing": None}
    tx.put(intent)
    events.emit(tx, "payment_intent.payment_failed", intent)
    return intent


def settle(tx: Transaction, intent: Json, *, status: str) -> Json:
    """End an attempt that was under way or waited for the customer: `succeeded` or `failed`."""
    cause = schedule.take(tx, intent["id"])
    method = objects.fetch(tx, "payment_method", intent["payment_method"])
    under_way = intent["status"] == "processing"
    charge = objects.fetch(tx, "charge", intent["latest_charge"]) if under_way else charges.make(tx, intent=intent, method=method)
    if status == "succeeded":
        return succeed(tx, intent, charge=charge, cause=cause)
    return fail(tx, intent, charge=charge, decline=cards.behind(method).decline or cards.NOT_AUTHENTICATED)


def stop(tx: Transaction, intent: Json) -> None:
    """Fail the charge of a debit that is cancelled before it cleared."""
    canceled = cards.bounced("payment_intent_canceled", "The PaymentIntent was canceled.")
    charges.fail(tx, objects.fetch(tx, "charge", intent["latest_charge"]), decline=canceled)
