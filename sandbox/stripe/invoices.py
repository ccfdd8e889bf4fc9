"""Invoices of the provider's: drafted, finalised, and paid by payment intents that were made elsewhere, or out of band."""

from sandbox.stripe import currencies, events, objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, boolean, choice, currency, integer, metadata, text
from sandbox.stripe.refusals import invalid, unexpected
from sandbox.stripe.store import Transaction, new_id

CREATE: Schema = {
    "customer": Field(read=text, required=True),
    "currency": Field(read=currency, required=True),
    "auto_advance": Field(read=boolean, default=False),
    "collection_method": Field(read=choice("charge_automatically", "send_invoice"), default="charge_automatically"),
    "days_until_due": Field(read=integer(minimum=0, maximum=365)),
    "description": Field(read=text),
    "metadata": Field(read=metadata, default={}),
}
ITEM: Schema = {
    "customer": Field(read=text, required=True),
    "invoice": Field(read=text, required=True),
    "amount": Field(read=integer(minimum=1), required=True),
    "currency": Field(read=currency, required=True),
    "description": Field(read=text),
    "metadata": Field(read=metadata, default={}),
}
FINALIZE: Schema = {"auto_advance": Field(read=boolean)}
PAY: Schema = {"paid_out_of_band": Field(read=boolean, default=False)}
ATTACH: Schema = {"payment_intent": Field(read=text, required=True)}
LIST: Schema = objects.LIST | {
    "customer": Field(read=text),
    "status": Field(read=choice("draft", "open", "paid", "uncollectible", "void")),
}


def create(tx: Transaction, params: Json) -> Json:
    """Write a draft without any lines."""
    objects.fetch(tx, "customer", params["customer"], param="customer")
    if (params["collection_method"] == "send_invoice") != (params["days_until_due"] is not None):
        raise invalid("`days_until_due` goes with `collection_method=send_invoice`.", param="days_until_due")
    invoice = tx.put(_new(tx, params))
    events.emit(tx, "invoice.created", invoice)
    return invoice


def _new(tx: Transaction, params: Json) -> Json:
    invoice_id = new_id("in")
    zero = (
        "amount_due",
        "amount_overpaid",
        "amount_paid",
        "amount_remaining",
        "amount_shipping",
        "attempt_count",
        "subtotal",
        "total",
    )
    nothing = {"object": "list", "data": [], "has_more": False}
    return (
        dict.fromkeys((*zero, "post_payment_credit_notes_amount", "pre_payment_credit_notes_amount", "starting_balance"), 0)
        | {
            "id": invoice_id,
            "object": "invoice",
            "attempted": False,
            "billing_reason": "manual",
            "created": tx.now,
            "due_date": None if params["days_until_due"] is None else tx.now + params["days_until_due"] * 86_400,
            "hosted_invoice_url": None,
            "invoice_pdf": None,
            "lines": nothing | {"url": f"/v1/invoices/{invoice_id}/lines"},
            "livemode": False,
            "number": None,
            "payments": nothing | {"url": "/v1/invoice_payments"},
            "status": "draft",
            "status_transitions": dict.fromkeys(("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")),
        }
        | {name: params[name] for name in CREATE if name != "days_until_due"}
    )


def add_item(tx: Transaction, params: Json) -> Json:
    """Put a line on a draft."""
    invoice = objects.fetch(tx, "invoice", params["invoice"], param="invoice")
    _expect(invoice, "draft", verb="add an item to")
    for name in ("customer", "currency"):
        if params[name] != invoice[name]:
            raise unexpected(f"The {name} of the item is not that of the invoice: {params[name]}.", param=name)
    if params["amount"] % currencies.step(params["currency"]):
        raise unexpected(f"Invalid amount: {params['currency']} has no such amount.", param="amount")
    item = tx.put({"id": new_id("ii"), "object": "invoiceitem", "created": tx.now, "date": tx.now, "livemode": False} | params)
    line = {"id": new_id("il"), "object": "line_item", "livemode": False, "quantity": 1}
    line |= {name: params[name] for name in ("amount", "currency", "description", "invoice", "metadata")}
    invoice["lines"]["data"].append(line)
    total = invoice["total"] + params["amount"]
    tx.put(invoice | dict.fromkeys(("amount_due", "amount_remaining", "subtotal", "total"), total))
    events.emit(tx, "invoiceitem.created", item)
    return item


def finalize(tx: Transaction, params: Json, invoice_id: str) -> Json:
    """Close a draft, which nothing but credit notes changes from then on."""
    invoice = objects.fetch(tx, "invoice", invoice_id, in_path=True)
    _expect(invoice, "draft", verb="finalize")
    if not invoice["lines"]["data"]:
        raise unexpected("The sandbox finalizes no invoice without lines.", code="invoice_no_customer_line_items")
    invoice |= {"status": "open", "number": f"{invoice_id[-8:].upper()}-0001", "auto_advance": bool(params["auto_advance"])}
    invoice["status_transitions"]["finalized_at"] = tx.now
    tx.put(invoice)
    events.emit(tx, "invoice.finalized", invoice)
    return invoice


def attach_payment(tx: Transaction, params: Json, invoice_id: str) -> Json:
    """Credit an intent that has succeeded to an open invoice; the sandbox attaches no other."""
    invoice = objects.fetch(tx, "invoice", invoice_id, in_path=True)
    _expect(invoice, "open", verb="attach a payment to")
    intent = objects.fetch(tx, "payment_intent", params["payment_intent"], param="payment_intent")
    if intent["status"] != "succeeded":
        raise unexpected(f"The sandbox attaches intents that have succeeded; this is {intent['status']}.", param="payment_intent")
    for name in ("customer", "currency"):
        if intent[name] != invoice[name]:
            raise unexpected(f"The {name} of the payment is not that of the invoice: {intent[name]}.", param="payment_intent")
    if intent["amount_received"] > invoice["amount_remaining"]:
        raise unexpected("The payment is more than what remains of the invoice.", param="payment_intent")
    if any(intent["id"] in intents(other) for other in objects.every(tx, "invoice", customer=intent["customer"])):
        raise unexpected("The payment is attached to an invoice.", param="payment_intent")
    return settle(
        tx, invoice, amount=intent["amount_received"], payment={"type": "payment_intent", "payment_intent": intent["id"]}
    )


def pay(tx: Transaction, params: Json, invoice_id: str) -> Json:
    """Mark an open invoice paid without the provider."""
    invoice = objects.fetch(tx, "invoice", invoice_id, in_path=True)
    _expect(invoice, "open", verb="pay")
    if not params["paid_out_of_band"]:
        raise unexpected("The sandbox charges no invoice: attach a payment, or pay it with `paid_out_of_band`.")
    return settle(
        tx, invoice, amount=invoice["amount_remaining"], payment={"type": "payment_record", "payment_record": new_id("prec")}
    )


def settle(tx: Transaction, invoice: Json, *, amount: int, payment: Json) -> Json:
    """Count a payment on an invoice, which is paid once nothing remains."""
    made = {
        "id": new_id("inpay"),
        "object": "invoice_payment",
        "amount_paid": amount,
        "amount_requested": amount,
        "livemode": False,
    }
    made |= {"created": tx.now, "currency": invoice["currency"], "invoice": invoice["id"], "payment": payment, "status": "paid"}
    invoice["payments"]["data"].append(made)
    invoice["amount_paid"] += amount
    return close(tx, invoice | {"amount_remaining": invoice["amount_remaining"] - amount, "attempted": True})


def close(tx: Transaction, invoice: Json) -> Json:
    """Write an open invoice as it is now, paid if nothing remains of it."""
    if invoice["amount_remaining"] or invoice["status"] != "open":
        return tx.put(invoice)
    invoice["status_transitions"]["paid_at"] = tx.now
    tx.put(invoice | {"status": "paid"})
    events.emit(tx, "invoice.paid", invoice | {"status": "paid"})
    return invoice | {"status": "paid"}


def intents(invoice: Json) -> set[str]:
    """Return the ids of the intents that paid an invoice."""
    return {one["payment"]["payment_intent"] for one in invoice["payments"]["data"] if one["payment"]["type"] == "payment_intent"}


def _expect(invoice: Json, status: str, *, verb: str) -> None:
    if invoice["status"] != status:
        raise unexpected(f"You cannot {verb} an invoice that is {invoice['status']}; it has to be {status}.")


def get(tx: Transaction, params: Json, invoice_id: str) -> Json:
    """Return one invoice."""
    return objects.fetch(tx, "invoice", invoice_id, in_path=True)


def list_invoices(tx: Transaction, params: Json) -> Json:
    """Return a page of invoices."""
    return objects.page(tx, "invoice", params, url="/v1/invoices", customer=params["customer"], status=params["status"])
