"""Credit notes of finalised invoices. They move no money here: they link refunds that were made before, or say who pays else."""

from sandbox.stripe import currencies, events, invoices, objects
from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, choice, hashes, integer, metadata, text
from sandbox.stripe.refunds import LOSES
from sandbox.stripe.refusals import unexpected
from sandbox.stripe.store import Transaction, new_id

REFUND: Schema = {
    "type": Field(read=choice("refund"), default="refund"),
    "refund": Field(read=text, required=True),
    "amount_refunded": Field(read=integer(minimum=1)),
}
CREATE: Schema = {
    "invoice": Field(read=text, required=True),
    "amount": Field(read=integer(minimum=1), required=True),
    "email_type": Field(read=choice("credit_note", "none"), default="credit_note"),  # nobody is written to
    "memo": Field(read=text),
    "metadata": Field(read=metadata, default={}),
    "out_of_band_amount": Field(read=integer(minimum=0), default=0),
    "reason": Field(read=choice("duplicate", "fraudulent", "order_change", "product_unsatisfactory")),
    "refunds": Field(read=hashes(REFUND), default=[]),
}
LIST: Schema = objects.LIST | {"customer": Field(read=text), "invoice": Field(read=text)}


def create(tx: Transaction, params: Json) -> Json:
    """Issue a note: first what remains of the invoice gets less, and the rest has to be given back in a way that it names."""
    invoice = objects.fetch(tx, "invoice", params["invoice"], param="invoice")
    if invoice["status"] not in ("open", "paid"):
        raise unexpected(
            f"You can only issue credit notes for open or paid invoices; this is {invoice['status']}.", param="invoice"
        )
    before = min(params["amount"], invoice["amount_remaining"])
    linked = [_linked(tx, invoice, given) for given in params["refunds"]]
    _check(tx, invoice, params, after=params["amount"] - before, linked=linked)
    note = tx.put(_new(tx, invoice, params, before=before, linked=linked))
    _count(tx, invoice, before=before, after=params["amount"] - before)
    events.emit(tx, "credit_note.created", note)
    return note


def _linked(tx: Transaction, invoice: Json, given: Json) -> Json:
    """Return a refund as a note names it: one that was made of the invoice's payment, and is not in another note."""
    refund = objects.fetch(tx, "refund", given["refund"], param="refunds")
    if refund["payment_intent"] not in invoices.intents(invoice):
        raise unexpected(f"The refund {refund['id']} is not of a payment of this invoice.", param="refunds")
    if refund["status"] in LOSES:
        raise unexpected(f"The refund {refund['id']} is {refund['status']}.", param="refunds")
    free = refund["amount"] - sum(_of_refunds(tx, invoice, {refund["id"]}))
    amount = given["amount_refunded"] or refund["amount"]
    if amount > free:
        raise unexpected(f"Of the refund {refund['id']} only {free} is in no credit note.", param="refunds")
    return {"amount_refunded": amount, "payment_record_refund": None, "refund": refund["id"], "type": "refund"}


def _of_refunds(tx: Transaction, invoice: Json, refunds: set[str]) -> list[int]:
    """Return what the invoice's notes link of these refunds."""
    notes = objects.every(tx, "credit_note", invoice=invoice["id"], status="issued")
    return [one["amount_refunded"] for note in notes for one in note["refunds"] if one["refund"] in refunds]


def _check(tx: Transaction, invoice: Json, params: Json, *, after: int, linked: list[Json]) -> None:
    """Refuse more than is left to credit, and sums that are not what is given back."""
    if params["amount"] % currencies.step(invoice["currency"]):
        raise unexpected(f"Invalid amount: {invoice['currency']} has no such amount.", param="amount")
    named = sum(one["amount_refunded"] for one in linked)
    left = invoice["amount_paid"] - invoice["post_payment_credit_notes_amount"] - _refunded_besides(tx, invoice) + named
    if after > left:
        asked, rest = (currencies.display(amount, invoice["currency"]) for amount in (after, left))
        raise unexpected(
            f"The credit note ({asked}) is greater than what can be credited of the invoice ({rest})", param="amount"
        )
    if named + params["out_of_band_amount"] != after:
        raise unexpected("The sum of refunds and out of band amount must equal the post payment amount of the credit note.")


def _refunded_besides(tx: Transaction, invoice: Json) -> int:
    """Return what was refunded of the invoice's payments and is in no note, which is nothing to credit any more."""
    made = [one for intent in invoices.intents(invoice) for one in objects.every(tx, "refund", payment_intent=intent)]
    alive = {one["id"]: one["amount"] for one in made if one["status"] not in LOSES}
    return sum(alive.values()) - sum(_of_refunds(tx, invoice, set(alive)))


def _count(tx: Transaction, invoice: Json, *, before: int, after: int) -> None:
    """Change what remains of the invoice, and how much of it was credited; `before` is negative when a note is taken back."""
    invoice["pre_payment_credit_notes_amount"] += before
    invoice["post_payment_credit_notes_amount"] += after
    less = {name: invoice[name] - before for name in ("amount_due", "amount_remaining")}
    invoices.close(tx, invoice | less)


def _new(tx: Transaction, invoice: Json, params: Json, *, before: int, linked: list[Json]) -> Json:
    note_id, amount = new_id("cn"), params["amount"]
    number = len(objects.every(tx, "credit_note", invoice=invoice["id"])) + 1
    line = {
        "id": new_id("cnli"),
        "object": "credit_note_line_item",
        "amount": amount,
        "livemode": False,
        "type": "custom_line_item",
    }
    kind = "mixed" if 0 < before < amount else "pre_payment" if before else "post_payment"
    return dict.fromkeys(("subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"), amount) | {
        "id": note_id,
        "object": "credit_note",
        "amount": amount,
        "amount_shipping": 0,
        "created": tx.now,
        "currency": invoice["currency"],
        "customer": invoice["customer"],
        "customer_balance_transaction": None,
        "discount_amount": 0,
        "discount_amounts": [],
        "effective_at": tx.now,
        "invoice": invoice["id"],
        "lines": {"object": "list", "data": [line], "has_more": False, "url": f"/v1/credit_notes/{note_id}/lines"},
        "livemode": False,
        "memo": params["memo"],
        "metadata": params["metadata"],
        "number": f"{invoice['number']}-CN-{number:02}",
        "out_of_band_amount": params["out_of_band_amount"] or None,
        "pdf": "",
        "post_payment_amount": amount - before,
        "pre_payment_amount": before,
        "pretax_credit_amounts": [],
        "reason": params["reason"],
        "refunds": linked,
        "shipping_cost": None,
        "status": "issued",
        "total_taxes": [],
        "type": kind,
        "voided_at": None,
    }


def void(tx: Transaction, params: Json, note_id: str) -> Json:
    """Take back a note of an invoice that is still open; one of a paid invoice stands."""
    note = objects.fetch(tx, "credit_note", note_id, in_path=True)
    invoice = objects.fetch(tx, "invoice", note["invoice"])
    if note["status"] != "issued" or invoice["status"] != "open":
        how = f"it is {note['status']}, and the invoice {invoice['status']}"
        raise unexpected(f"You can only void issued credit notes of open invoices: {how}.")
    note = tx.put(note | {"status": "void", "voided_at": tx.now})
    _count(tx, invoice, before=-note["pre_payment_amount"], after=0)
    events.emit(tx, "credit_note.voided", note)
    return note


def get(tx: Transaction, params: Json, note_id: str) -> Json:
    """Return one note."""
    return objects.fetch(tx, "credit_note", note_id, in_path=True)


def list_notes(tx: Transaction, params: Json) -> Json:
    """Return a page of notes."""
    filters = {name: params[name] for name in ("customer", "invoice")}
    return objects.page(tx, "credit_note", params, url="/v1/credit_notes", **filters)
