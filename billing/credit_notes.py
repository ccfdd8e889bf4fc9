"""Credit notes at the provider: one for each refund that went out of a payment of an invoice there, once the refund succeeded.

A note that refunds by itself would hide a refund that fails: ours links the refund, and moves no money.
"""

import re
from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from billing import rows, settlements
from ledger.refusals import Refusal
from outbox import messages, settling
from outbox.messages import Cause

TOPIC = "payment.credit_note"
# The row of the payment is waited for, whether it has an invoice or not: one that is linked just now is seen, or sees the refund.
DUE = """
SELECT r.id AS refund_id, r.payment_id, p.invoice_id, r.customer_id, r.amount_minor, r.currency, r.reason, r.provider_refund_id,
    p.provider_invoice_id
FROM public.billing_refund r JOIN public.billing_payment p ON p.id = r.payment_id
WHERE r.id = %(refund)s AND r.status = 'confirmed'
  AND NOT EXISTS (SELECT FROM public.outbox_message WHERE dedupe_key = 'credit_note:' || r.id || ':1')
FOR NO KEY UPDATE OF p
"""
LINK = """
UPDATE public.billing_payment SET provider_invoice_id = %(invoice)s
WHERE provider_payment_id = %(payment)s AND NOT stray AND provider_invoice_id IS NULL RETURNING id, customer_id
"""
REFUNDS = "SELECT id FROM public.billing_refund WHERE payment_id = %s AND status = 'confirmed' ORDER BY id"
STATUS = "SELECT status FROM public.billing_refund WHERE id = %s"
ISSUE = """
UPDATE public.billing_refund SET provider_credit_note_id = %(note)s
WHERE id = %(refund_id)s AND coalesce(provider_credit_note_id, %(note)s) = %(note)s RETURNING status
"""
STANDING = """
SELECT r.provider_credit_note_id, p.provider_invoice_id, m.state IN ('leased', 'accepted', 'uncertain', 'dead') AS perhaps
FROM public.billing_refund r JOIN public.billing_payment p ON p.id = r.payment_id
LEFT JOIN public.outbox_message m ON m.dedupe_key = 'credit_note:' || r.id || ':1'
WHERE r.id = %(refund)s
"""
# The provider's words for why, where ours say as much; nobody is called a fraud because of a word.
REASONS = {
    "duplicate": re.compile(r"\b(duplicat|twice|doubl[ey] (bill|charg|pa[iy]))", re.IGNORECASE),
    "product_unsatisfactory": re.compile(r"\b(broken|defect|outage|unsatisf|down ?time)", re.IGNORECASE),
    "order_change": re.compile(r"\b(cancel|downgrad|order|returned)", re.IGNORECASE),
}
TO_DO = "The provider voids no note of a paid invoice: pay the customer in another way, or put the invoice right there by hand."


def promise(conn: Connection[Any], *, refund: int, cause: Cause) -> None:
    """Queue the note of a confirmed refund, if its payment has an invoice at the provider and no note was queued before.

    Behind whatever else is about the payment: the provider subtracts earlier refunds and notes from what can be credited.
    """
    due = rows.one(conn, DUE, {"refund": refund})
    if due is not None and due["provider_invoice_id"] is not None:
        messages.enqueue(
            conn,
            topic=TOPIC,
            aggregate=f"payment:{due['payment_id']}",
            dedupe_key=f"credit_note:{refund}:1",
            payload=due,
            cause=cause,
        )


def link(conn: Connection[Any], *, provider_payment_id: str, provider_invoice_id: str) -> None:
    """Enter that a payment paid an invoice of the provider's, and queue the notes of what was refunded of it; raise Refusal.

    In one transaction, for who imports payments: as the owner.
    """
    payment = rows.one(conn, LINK, {"payment": provider_payment_id, "invoice": provider_invoice_id})
    if payment is None:
        raise Refusal(f"Payment {provider_payment_id} is not there, pays nothing, or has an invoice at the provider already.")
    for (refund,) in conn.execute(REFUNDS, (payment["id"],)).fetchall():
        promise(conn, refund=refund, cause=Cause(subject=payment["customer_id"]))


def is_wanted(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Return whether the refund of a note that has not left still stands: one that came back is credited by nothing."""
    with conn.transaction():
        settling.speak_for(conn, message=dict(message))
        found = conn.execute(STATUS, (message["payload"]["refund_id"],)).fetchone()
    return found is not None and found[0] == "confirmed"


def issued(conn: Connection[Any], *, note: Mapping[str, Any], provider_note_id: str) -> str | None:
    """Keep the id of the note on its refund; `note` is the message's payload. Return what is wrong when the refund came back."""
    found = conn.execute(ISSUE, {"refund_id": note["refund_id"], "note": provider_note_id}).fetchone()
    if found is None:
        raise settlements.BooksDisagree(f"refund {note['refund_id']} is not there, or has another credit note")
    return None if found[0] == "confirmed" else f"The refund came back. {_stands(provider_note_id, note['provider_invoice_id'])}"


def left_behind(conn: Connection[Any], *, refund: int) -> str:
    """Return what a refund that came back leaves at the provider, in sentences; nothing where it has no note."""
    found = rows.one(conn, STANDING, {"refund": refund})
    if found is None:
        return ""
    if found["provider_credit_note_id"]:
        return _stands(found["provider_credit_note_id"], found["provider_invoice_id"])
    return "A credit note for it is on its way, and a person will be asked if it arrives." if found["perhaps"] else ""


def _stands(note: str, invoice: str) -> str:
    return f"Credit note {note} of invoice {invoice} stands. {TO_DO}"


def reason(text: str) -> str | None:
    """Return the provider's word for why, or None where it has none."""
    return next((word for word, words in REASONS.items() if words.search(text)), None)
