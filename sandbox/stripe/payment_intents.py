"""Payment intents: create, confirm, cancel, get, list; what an attempt leads to is in `attempts`."""

from sandbox.stripe import attempts, currencies, events, objects, payment_methods, schedule
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, boolean, choice, currency, integer, metadata, nested, text, words
from sandbox.stripe.refusals import invalid, unexpected
from sandbox.stripe.store import Transaction, new_id

AUTOMATIC: Schema = {
    "enabled": Field(read=boolean, required=True),
    "allow_redirects": Field(read=choice("always", "never"), default="always"),
}
CONFIRM: Schema = {
    "payment_method": Field(read=text),
    "off_session": Field(read=boolean, default=False),
    "error_on_requires_action": Field(read=boolean, default=False),
    "return_url": Field(read=text),
    "receipt_email": Field(read=text),
}
CREATE: Schema = CONFIRM | {
    "amount": Field(read=integer(minimum=1), required=True),
    "currency": Field(read=currency, required=True),
    "customer": Field(read=text),
    "description": Field(read=text),
    "metadata": Field(read=metadata, default={}),
    "confirm": Field(read=boolean, default=False),
    "capture_method": Field(read=choice("automatic", "automatic_async"), default="automatic_async"),
    "confirmation_method": Field(read=choice("automatic"), default="automatic"),
    "automatic_payment_methods": Field(read=nested(AUTOMATIC)),
    "payment_method_types": Field(read=words),
    "setup_future_usage": Field(read=choice("off_session", "on_session")),
    "statement_descriptor": Field(read=text),
    "statement_descriptor_suffix": Field(read=text),
}
COPIED = ("amount", "capture_method", "confirmation_method", "currency", "customer", "description", "metadata",
          "receipt_email", "setup_future_usage", "statement_descriptor", "statement_descriptor_suffix")  # fmt: skip
REASONS = ("duplicate", "fraudulent", "requested_by_customer", "abandoned")
CANCEL: Schema = {"cancellation_reason": Field(read=choice(*REASONS))}
LIST: Schema = objects.LIST | {"customer": Field(read=text)}
CONFIRMABLE = ("requires_confirmation", "requires_action", "requires_payment_method")
CANCELABLE = ("requires_payment_method", "requires_confirmation", "requires_action", "processing")
NO_METHOD = (
    "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with"
    " a payment method and then confirm it again, or confirm it again directly with a payment method."
)
NO_RETURN_URL = (
    "A `return_url` must be specified because this Payment Intent is configured to automatically accept the payment methods"
    " enabled in the Dashboard, some of which may require a full page redirect to succeed. If you do not want to accept"
    " redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and"
    " `automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents."
)


def create(tx: Transaction, params: Json) -> Json:
    """Write a new intent; with `confirm` it is attempted at once."""
    _check_create(params)
    if params["customer"]:
        objects.fetch(tx, "customer", params["customer"], param="customer")
    intent = _new(tx, params)
    if params["payment_method"]:
        _use(tx, intent, params["payment_method"])
    tx.put(intent)
    events.emit(tx, "payment_intent.created", intent)
    return confirm(tx, _only(CONFIRM, params) | {"payment_method": None}, intent["id"]) if params["confirm"] else intent


def _check_create(params: Json) -> None:
    code, amount = params["currency"], params["amount"]
    if amount < currencies.least(code):
        least = currencies.display(currencies.least(code), code)
        raise invalid(f"Amount must be at least {least} {code}", code="amount_too_small", param="amount")
    if amount % currencies.step(code):
        raise invalid(f"Invalid amount: {code} amounts must be a multiple of {currencies.step(code)}.", param="amount")
    if params["automatic_payment_methods"] and params["payment_method_types"]:
        raise invalid("You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
    for name in ("off_session", "error_on_requires_action", "return_url"):
        if params[name] and not params["confirm"]:
            raise invalid(f"`{name}` can only be passed when `confirm` is true.", param=name)


def _new(tx: Transaction, params: Json) -> Json:
    intent_id, types = new_id("pi"), params["payment_method_types"]
    automatic = params["automatic_payment_methods"] or (None if types else {"enabled": True, "allow_redirects": "always"})
    return {
        "id": intent_id,
        "object": "payment_intent",
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": 0,
        "application": None,
        "application_fee_amount": None,
        "automatic_payment_methods": automatic,
        "canceled_at": None,
        "cancellation_reason": None,
        "client_secret": new_id(f"{intent_id}_secret"),
        "created": tx.now,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "next_action": None,
        "on_behalf_of": None,
        "payment_method": None,
        "payment_method_options": {},
        "payment_method_types": types or ["card", "us_bank_account"],
        "processing": None,
        "review": None,
        "shipping": None,
        "source": None,
        "status": "requires_payment_method",
        "transfer_data": None,
        "transfer_group": None,
    } | {name: params[name] for name in COPIED}


def _use(tx: Transaction, intent: Json, method_id: str) -> None:
    """Put a payment method on an intent: a test card by name, or one that its customer may use."""
    method = payment_methods.resolve(tx, method_id)
    if method["customer"] not in (None, intent["customer"]):
        raise unexpected(payment_methods.not_attached(method["id"]), param="payment_method")
    if method["type"] not in intent["payment_method_types"]:
        allowed = ", ".join(intent["payment_method_types"])
        message = f"The PaymentMethod provided ({method['type']}) is not allowed for this PaymentIntent: {allowed}."
        raise unexpected(message, param="payment_method")
    intent |= {"payment_method": method["id"], "status": "requires_confirmation"}


def confirm(tx: Transaction, params: Json, intent_id: str) -> Json:
    """Attempt the payment; a decline raises and stays, a success is final."""
    intent = objects.fetch(tx, "payment_intent", intent_id, param="intent", in_path=True)
    _check_status(intent, CONFIRMABLE, verb="confirm", participle="confirmed")
    if params["payment_method"]:
        _use(tx, intent, params["payment_method"])
    if not intent["payment_method"]:
        raise unexpected(NO_METHOD, code="payment_intent_unexpected_state", payment_intent=intent)
    redirects = (intent["automatic_payment_methods"] or {"allow_redirects": "never"})["allow_redirects"] == "always"
    if redirects and not params["return_url"]:
        raise unexpected(NO_RETURN_URL, param="return_url", payment_intent=intent)
    intent["receipt_email"] = params["receipt_email"] or intent["receipt_email"]
    present = not (params["off_session"] or params["error_on_requires_action"])
    return attempts.attempt(tx, intent, customer_present=present)


def _check_status(intent: Json, allowed: tuple[str, ...], *, verb: str, participle: str) -> None:
    if intent["status"] not in allowed:
        why = f"You cannot {verb} this PaymentIntent because it has a status of {intent['status']}."
        which = f"Only a PaymentIntent with one of the following statuses may be {participle}: {', '.join(allowed)}."
        raise unexpected(f"{why} {which}", code="payment_intent_unexpected_state", payment_intent=intent)


def cancel(tx: Transaction, params: Json, intent_id: str) -> Json:
    """End an intent that has not moved money; a debit under way is stopped."""
    intent = objects.fetch(tx, "payment_intent", intent_id, param="intent", in_path=True)
    _check_status(intent, CANCELABLE, verb="cancel", participle="canceled")
    schedule.take(tx, intent_id)
    if intent["status"] == "processing":
        attempts.stop(tx, intent)
    intent |= {"status": "canceled", "canceled_at": tx.now, "cancellation_reason": params["cancellation_reason"]}
    intent |= {"next_action": None, "processing": None}
    tx.put(intent)
    events.emit(tx, "payment_intent.canceled", intent)
    return intent


def _only(schema: Schema, params: Json) -> Json:
    return {name: params[name] for name in schema}


def get(tx: Transaction, params: Json, intent_id: str) -> Json:
    """Return one intent."""
    return objects.fetch(tx, "payment_intent", intent_id, param="intent", in_path=True)


def list_intents(tx: Transaction, params: Json) -> Json:
    """Return a page of intents."""
    return objects.page(tx, "payment_intent", params, url="/v1/payment_intents", customer=params["customer"])
