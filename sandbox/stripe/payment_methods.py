"""Payment methods: copies of test cards, attached to a customer or used once."""

from sandbox.stripe import cards, events, objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, choice, text
from sandbox.stripe.refusals import unexpected
from sandbox.stripe.store import Transaction, new_id

ATTACH: Schema = {"customer": Field(read=text, required=True)}
LIST: Schema = objects.LIST | {"customer": Field(read=text), "type": Field(read=choice("card", "us_bank_account"))}
LIST_OF_CUSTOMER: Schema = {name: field for name, field in LIST.items() if name != "customer"}


def attach(tx: Transaction, params: Json, method_id: str) -> Json:
    """Give a payment method to a customer for reuse; a test card's name makes a new copy of it."""
    customer = objects.fetch(tx, "customer", params["customer"], param="customer")
    method = resolve(tx, method_id, in_path=True)
    if method["customer"] not in (None, customer["id"]):
        raise unexpected("The payment method you provided has already been attached to a customer.")
    method["customer"] = customer["id"]
    tx.put(method)
    events.emit(tx, "payment_method.attached", method)
    return method


def resolve(tx: Transaction, method_id: str, *, in_path: bool = False) -> Json:
    """Return the payment method of an id, or a fresh copy of the test card of that name."""
    if method_id in cards.METHODS:
        return tx.put(_copy(tx, cards.METHODS[method_id]))
    return objects.fetch(tx, "payment_method", method_id, param="payment_method", in_path=in_path)


def _copy(tx: Transaction, method: cards.Method) -> Json:
    return {
        "id": new_id("pm"),
        "object": "payment_method",
        "allow_redisplay": "unspecified",
        "billing_details": {"address": None, "email": None, "name": None, "phone": None},
        method.type: method.details(),
        "created": tx.now,
        "customer": None,
        "livemode": False,
        "metadata": {},
        "type": method.type,
    }


def get(tx: Transaction, params: Json, method_id: str) -> Json:
    """Return one payment method."""
    return objects.fetch(tx, "payment_method", method_id, in_path=True)


def get_of_customer(tx: Transaction, params: Json, customer_id: str, method_id: str) -> Json:
    """Return one payment method if it is this customer's."""
    method = objects.fetch(tx, "payment_method", method_id, in_path=True)
    if method["customer"] != customer_id:
        raise unexpected(not_attached(method_id))
    return method


def not_attached(method_id: str) -> str:
    """Return Stripe's sentence about somebody else's card."""
    return (
        f"The customer does not have a payment method with the ID {method_id}."
        " The payment method must be attached to the customer."
    )


def list_methods(tx: Transaction, params: Json) -> Json:
    """Return a page of payment methods."""
    url = "/v1/payment_methods"
    return objects.page(tx, "payment_method", params, url=url, customer=params["customer"], type=params["type"])


def list_of_customer(tx: Transaction, params: Json, customer_id: str) -> Json:
    """Return a page of a customer's payment methods."""
    objects.fetch(tx, "customer", customer_id, param="customer", in_path=True)
    url = f"/v1/customers/{customer_id}/payment_methods"
    return objects.page(tx, "payment_method", params, url=url, customer=customer_id, type=params["type"])
