"""Customers: create, get, list."""

from sandbox.stripe import events, objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, metadata, text
from sandbox.stripe.store import Transaction, new_id

CREATE: Schema = {
    "name": Field(read=text),
    "email": Field(read=text),
    "description": Field(read=text),
    "phone": Field(read=text),
    "metadata": Field(read=metadata, default={}),
}
LIST: Schema = objects.LIST | {"email": Field(read=text)}


def create(tx: Transaction, params: Json) -> Json:
    """Write a new customer."""
    customer = tx.put(
        {
            "id": new_id("cus"),
            "object": "customer",
            "address": None,
            "balance": 0,
            "created": tx.now,
            "currency": None,
            "default_source": None,
            "delinquent": False,
            "discount": None,
            "invoice_settings": {"custom_fields": None, "default_payment_method": None, "footer": None},
            "livemode": False,
            "preferred_locales": [],
            "shipping": None,
            "tax_exempt": "none",
        }
        | {name: params[name] for name in CREATE}
    )
    events.emit(tx, "customer.created", customer)
    return customer


def get(tx: Transaction, params: Json, customer_id: str) -> Json:
    """Return one customer."""
    return objects.fetch(tx, "customer", customer_id, in_path=True)


def list_customers(tx: Transaction, params: Json) -> Json:
    """Return a page of customers."""
    return objects.page(tx, "customer", params, url="/v1/customers", email=params["email"])
