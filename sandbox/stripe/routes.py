"""The table of everything the API does: method, path, parameters, operation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox.stripe import (
    balance,
    charges,
    credit_notes,
    customers,
    disputes,
    events,
    invoices,
    objects,
    payment_intents,
    payment_methods,
    refunds,
)
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Schema
from sandbox.stripe.refusals import unknown_url


@dataclass(frozen=True, kw_only=True)
class Route:
    """One operation; it gets a transaction, the read parameters and the ids of its path."""

    method: str
    path: re.Pattern[str]
    schema: Schema
    operate: Callable[..., Json]


def route(method: str, path: str, operate: Callable[..., Json], schema: Schema | None = None) -> Route:
    """Return a route; `{}` in a path stands for an id."""
    pattern = re.compile(path.replace("{}", r"([A-Za-z0-9_]+)"))
    return Route(method=method, path=pattern, operate=operate, schema=(schema or {}) | objects.EXPAND)


ROUTES = (
    route("POST", "/v1/customers", customers.create, customers.CREATE),
    route("GET", "/v1/customers", customers.list_customers, customers.LIST),
    route("GET", "/v1/customers/{}", customers.get),
    route("GET", "/v1/customers/{}/payment_methods", payment_methods.list_of_customer, payment_methods.LIST_OF_CUSTOMER),
    route("GET", "/v1/customers/{}/payment_methods/{}", payment_methods.get_of_customer),
    route("GET", "/v1/payment_methods", payment_methods.list_methods, payment_methods.LIST),
    route("GET", "/v1/payment_methods/{}", payment_methods.get),
    route("POST", "/v1/payment_methods/{}/attach", payment_methods.attach, payment_methods.ATTACH),
    route("POST", "/v1/payment_intents", payment_intents.create, payment_intents.CREATE),
    route("GET", "/v1/payment_intents", payment_intents.list_intents, payment_intents.LIST),
    route("GET", "/v1/payment_intents/{}", payment_intents.get),
    route("POST", "/v1/payment_intents/{}/confirm", payment_intents.confirm, payment_intents.CONFIRM),
    route("POST", "/v1/payment_intents/{}/cancel", payment_intents.cancel, payment_intents.CANCEL),
    route("GET", "/v1/charges", charges.list_charges, charges.LIST),
    route("GET", "/v1/charges/{}", charges.get),
    route("POST", "/v1/refunds", refunds.create, refunds.CREATE),
    route("GET", "/v1/refunds", refunds.list_refunds, refunds.LIST),
    route("GET", "/v1/refunds/{}", refunds.get),
    route("POST", "/v1/refunds/{}/cancel", refunds.cancel),
    route("GET", "/v1/disputes", disputes.list_disputes, disputes.LIST),
    route("GET", "/v1/disputes/{}", disputes.get),
    route("POST", "/v1/invoices", invoices.create, invoices.CREATE),
    route("GET", "/v1/invoices", invoices.list_invoices, invoices.LIST),
    route("GET", "/v1/invoices/{}", invoices.get),
    route("POST", "/v1/invoiceitems", invoices.add_item, invoices.ITEM),
    route("POST", "/v1/invoices/{}/finalize", invoices.finalize, invoices.FINALIZE),
    route("POST", "/v1/invoices/{}/pay", invoices.pay, invoices.PAY),
    route("POST", "/v1/invoices/{}/attach_payment", invoices.attach_payment, invoices.ATTACH),
    route("POST", "/v1/credit_notes", credit_notes.create, credit_notes.CREATE),
    route("GET", "/v1/credit_notes", credit_notes.list_notes, credit_notes.LIST),
    route("GET", "/v1/credit_notes/{}", credit_notes.get),
    route("POST", "/v1/credit_notes/{}/void", credit_notes.void),
    route("GET", "/v1/events", events.list_events, events.LIST),
    route("GET", "/v1/events/{}", events.get),
    route("GET", "/v1/balance", balance.get),
)


def find(method: str, path: str) -> tuple[Route, tuple[str | Any, ...]]:
    """Return the route of a request and the ids in its path, or raise Stripe's 404."""
    for candidate in ROUTES:
        if candidate.method == method and (match := candidate.path.fullmatch(path)):
            return candidate, match.groups()
    raise unknown_url(method, path)
