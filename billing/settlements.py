"""What an outcome of a charge or a refund does to the customer's books. Each verb may be repeated without effect.

They run as the outbox login inside the settling transaction, whose `backstop.subject` is the customer.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from billing import money, rows
from ledger.refusals import Refusal


class BooksDisagree(Refusal):
    """The books are not in a state in which this outcome can be applied."""


INVOICE = """
SELECT status, amount_due_minor, charge_attempt, status = 'charge_queued' AND charge_attempt = %(attempt)s
    OR status IN ('draft', 'charge_failed') AND amount_due_minor = %(amount_minor)s AS owed
FROM public.billing_invoice WHERE id = %(invoice_id)s FOR NO KEY UPDATE
"""
PAY = """
INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id, stray)
VALUES (%(customer_id)s, %(invoice_id)s, %(currency)s, %(amount_minor)s, %(provider_payment_id)s, %(stray)s)
"""
PAID = "SELECT id, stray FROM public.billing_payment WHERE provider_payment_id = %(provider_payment_id)s"
OWED_TO_NOBODY = "UPDATE public.billing_payment SET stray = true WHERE id = %s"
# The provider paid out what it, or a person, had called refused.
CONFIRM_LATE = """
UPDATE public.billing_refund SET status = 'confirmed', provider_refund_id = %s, settled_at = now()
WHERE id = %s AND status IN ('refused', 'withdrawn')
"""
RESERVE = """
UPDATE public.billing_payment SET refunded_minor = refunded_minor + %(amount_minor)s
WHERE id = %(payment_id)s AND refunded_minor + %(amount_minor)s <= amount_minor
"""
OTHERS = """
SELECT sum(amount_minor)::bigint FROM public.billing_refund
WHERE payment_id = %(payment_id)s AND id > %(refund_id)s AND status IN ('queued', 'confirmed')
"""
REVERSE = """
INSERT INTO public.billing_refund_reversal (customer_id, refund_id, currency, amount_minor, reason)
VALUES (%(customer_id)s, %(refund_id)s, %(currency)s, %(amount_minor)s, %(reason)s)
"""
# Why money that came for an invoice in this status pays nothing.
NOT_OWED = {
    "void": "is void",
    "paid": "is paid already",
    "charge_queued": "is being charged again",
    "draft": "has {due} due by now",
    "charge_failed": "has {due} due by now",
}


def charge_succeeded(conn: Connection[Any], *, charge: Mapping[str, Any], attempt: int, provider_payment_id: str) -> str | None:
    """Record the payment, and mark the invoice paid if it is owed; `charge` is the message's payload, `attempt` the invoice's.

    Success may come late. Where nothing is owed by then, the payment is a stray one, and what is returned says why.
    """
    known = rows.one(conn, PAID, {"provider_payment_id": provider_payment_id})
    invoice = rows.one(conn, INVOICE, {**charge, "attempt": attempt})
    if known and (known["stray"] or (invoice and invoice["status"] == "paid")):
        return None
    if invoice is None:
        raise BooksDisagree(f"invoice {charge['invoice_id']} is not there, so it cannot become paid")
    stray = not invoice["owed"]
    if known is None:
        conn.execute(PAY, {**charge, "provider_payment_id": provider_payment_id, "stray": stray})
    elif stray:
        conn.execute(OWED_TO_NOBODY, (known["id"],))
    if stray:
        return _of_stray(charge, invoice)
    conn.execute("UPDATE public.billing_invoice SET status = 'paid', paid_at = now() WHERE id = %s", (charge["invoice_id"],))
    return None


def _of_stray(charge: Mapping[str, Any], invoice: Mapping[str, Any]) -> str:
    due = money.format(invoice["amount_due_minor"], charge["currency"])
    why = NOT_OWED[invoice["status"]].format(due=due)
    taken = money.format(charge["amount_minor"], charge["currency"])
    return f"{taken} was taken, but invoice {charge['invoice_id']} {why}: the money is owed to nobody, and can be sent back."


def charge_rejected(conn: Connection[Any], *, charge: Mapping[str, Any]) -> None:
    """Mark the invoice's charge failed: it may be charged again or voided."""
    _move_invoice(conn, invoice=charge["invoice_id"], status="charge_failed")


def charge_withdrawn(conn: Connection[Any], *, charge: Mapping[str, Any]) -> None:
    """Give the invoice back as a draft: the charge never left."""
    _move_invoice(conn, invoice=charge["invoice_id"], status="draft")


def refund_succeeded(conn: Connection[Any], *, refund: Mapping[str, Any], provider_refund_id: str) -> str | None:
    """Mark the refund confirmed; `refund` is the message's payload.

    Success may come late: then its amount is reserved again, and what is returned says when another refund was made meanwhile.
    """
    late = conn.execute(CONFIRM_LATE, (provider_refund_id, refund["refund_id"])).rowcount == 1
    if not late:
        _move_refund(conn, refund=refund["refund_id"], status="confirmed", provider_refund_id=provider_refund_id)
        return None
    _reserve(conn, refund=refund)
    others = conn.execute(OTHERS, refund).fetchone()
    if not others or not others[0]:
        return None
    return f"It went out after all, and {money.format(others[0], refund['currency'])} of the payment was refunded besides."


def refund_reversed(conn: Connection[Any], *, refund: Mapping[str, Any], reason: str) -> str | None:
    """Enter that a confirmed refund failed and came back: a reversal, and its amount may be refunded again.

    `reason` is the provider's code. None when that was entered before.
    """
    moved = conn.execute(
        "UPDATE public.billing_refund SET status = 'reversed' WHERE id = %s AND status = 'confirmed'", (refund["refund_id"],)
    )
    if moved.rowcount != 1:
        _expect(conn, "SELECT status FROM public.billing_refund WHERE id = %s", refund["refund_id"], "reversed", what="refund")
        return None
    conn.execute(REVERSE, {**refund, "reason": reason})
    _give_back(conn, refund=refund)
    amount, why = money.format(refund["amount_minor"], refund["currency"]), reason.replace("_", " ")
    return f"The refund of {amount} was confirmed, but failed afterwards ({why}): the customer has not got it."


def refund_rejected(conn: Connection[Any], *, refund: Mapping[str, Any], provider_refund_id: str | None) -> None:
    """Mark the refund refused and give its amount back to what may be refunded of the payment."""
    if _move_refund(conn, refund=refund["refund_id"], status="refused", provider_refund_id=provider_refund_id):
        _give_back(conn, refund=refund)


def refund_withdrawn(conn: Connection[Any], *, refund: Mapping[str, Any]) -> None:
    """Mark the refund withdrawn, as it never left, and give its amount back as above."""
    if _move_refund(conn, refund=refund["refund_id"], status="withdrawn", provider_refund_id=None):
        _give_back(conn, refund=refund)


def _move_invoice(conn: Connection[Any], *, invoice: int, status: str) -> None:
    """Move an invoice from charge_queued; a repeat finds it moved; one that is void stays so; anything else is an error."""
    moved = conn.execute(
        "UPDATE public.billing_invoice SET status = %s, paid_at = CASE WHEN %s = 'paid' THEN now() END"
        " WHERE id = %s AND status = 'charge_queued'",
        (status, status, invoice),
    )
    if moved.rowcount != 1:
        _expect(conn, "SELECT status FROM public.billing_invoice WHERE id = %s", invoice, status, "void", what="invoice")


def _reserve(conn: Connection[Any], *, refund: Mapping[str, Any]) -> None:
    """Take a refund's amount from what may be refunded, again; another refund may hold it until the provider refuses that."""
    moved = conn.execute(RESERVE, refund)
    if moved.rowcount != 1:
        raise BooksDisagree(f"payment {refund['payment_id']} has less left than refund {refund['refund_id']}")


def _move_refund(conn: Connection[Any], *, refund: int, status: str, provider_refund_id: str | None) -> bool:
    """Move a refund from queued and return True; False when it was moved before; anything else is an error."""
    moved = conn.execute(
        "UPDATE public.billing_refund SET status = %s, provider_refund_id = %s, settled_at = now()"
        " WHERE id = %s AND status = 'queued'",
        (status, provider_refund_id, refund),
    )
    if moved.rowcount != 1:
        _expect(conn, "SELECT status FROM public.billing_refund WHERE id = %s", refund, status, what="refund")
    return moved.rowcount == 1


def _give_back(conn: Connection[Any], *, refund: Mapping[str, Any]) -> None:
    moved = conn.execute(
        "UPDATE public.billing_payment SET refunded_minor = refunded_minor - %s WHERE id = %s",
        (refund["amount_minor"], refund["payment_id"]),
    )
    if moved.rowcount != 1:
        raise BooksDisagree(f"payment {refund['payment_id']} is not there")


def _expect(conn: Connection[Any], query: str, key: int, *statuses: str, what: str) -> None:
    """Raise BooksDisagree unless the row is there and already has one of the statuses."""
    found = conn.execute(query, (key,)).fetchone()
    if found is None or found[0] not in statuses:
        stands = str(found[0]).replace("_", " ") if found else "not there"
        raise BooksDisagree(f"{what} {key} is {stands}, so it cannot become {statuses[0].replace('_', ' ')}")
