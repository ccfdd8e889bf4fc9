"""The verbs of a refund: reserve the amount on the payment, write the refund, queue it for the provider."""

from typing import Any

from psycopg import Connection

from billing import invoices, rows
from billing.invoices import Reference
from ledger.refusals import Refusal
from outbox import messages
from outbox.messages import Cause

REQUEST = """
WITH account AS (
    SELECT a.customer_id, c.card_last4
    FROM public.billing_credit_account a JOIN public.billing_customer c ON c.id = a.customer_id
    WHERE a.customer_id = %(customer_id)s FOR NO KEY UPDATE OF a
), found AS (
    SELECT i.id, i.customer_id, i.status FROM public.billing_invoice i JOIN account ON account.customer_id = i.customer_id
    WHERE i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void'
    FOR NO KEY UPDATE OF i
), reserved AS (
    UPDATE public.billing_payment p SET refunded_minor = p.refunded_minor + %(amount_minor)s FROM found
    WHERE p.id = (SELECT max(newest.id) FROM public.billing_payment newest
                  WHERE newest.customer_id = found.customer_id AND newest.invoice_id = found.id AND NOT newest.stray)
    RETURNING p.id, p.customer_id, p.provider_payment_id, p.amount_minor - p.refunded_minor AS refundable_minor
), refund AS (
    INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)
    SELECT reserved.customer_id, reserved.id, %(currency)s, %(amount_minor)s, %(reason)s FROM reserved
    RETURNING id, status
)
SELECT account.card_last4, found.id AS invoice_id, found.status AS invoice_status, reserved.id AS payment_id,
       reserved.provider_payment_id, reserved.refundable_minor, refund.id AS refund_id, refund.status
FROM account LEFT JOIN found ON true LEFT JOIN reserved ON true LEFT JOIN refund ON true
"""

STRAY = """
SELECT id AS payment_id, customer_id, invoice_id, currency, amount_minor - refunded_minor AS left_minor, stray,
       provider_payment_id
FROM public.billing_payment WHERE provider_payment_id = %(provider_payment_id)s FOR NO KEY UPDATE
"""
RETURN_STRAY = """
WITH reserved AS (
    UPDATE public.billing_payment SET refunded_minor = amount_minor WHERE id = %(payment_id)s RETURNING id
)
INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)
SELECT %(customer_id)s, reserved.id, %(currency)s, %(left_minor)s, %(reason)s FROM reserved RETURNING id AS refund_id
"""


def request(
    conn: Connection[Any], *, invoice: Reference, amount_minor: int, currency: str, reason: str, cause: Cause
) -> dict[str, Any]:
    """Queue a refund of an invoice's payment to its card; the database caps all refunds of a payment at its amount."""
    invoices.check_payable(amount_minor, currency)
    asked = {"amount_minor": amount_minor, "currency": currency, "reason": reason}
    row = rows.one(conn, REQUEST, invoice.parameters() | asked)
    if row is None:
        raise invoices.unknown_customer(invoice.customer_id)
    if row["refund_id"] is None:
        raise _not_refundable(row, invoice)
    _enqueue(conn, row, invoice.customer_id, amount_minor, currency, cause)
    return {
        "refund_id": row["refund_id"],
        "invoice_id": row["invoice_id"],
        "status": row["status"],
        "amount_minor": amount_minor,
        "refundable_minor": row["refundable_minor"],
        "currency": currency,
        "card_last4": row["card_last4"],
    }


def return_stray(conn: Connection[Any], *, provider_payment_id: str, card_last4: str | None, reason: str) -> dict[str, Any]:
    """Queue a refund of all that is left of a payment that pays nothing, and return the refund's row; raise Refusal.

    Runs as the outbox login with the customer as its subject: no conversation asks for it.
    """
    payment = rows.one(conn, STRAY, {"provider_payment_id": provider_payment_id})
    if payment is None:
        raise Refusal("The books know no such payment.")
    if not payment["stray"]:
        raise Refusal(f"Invoice {payment['invoice_id']} is paid with it: ask for an ordinary refund.")
    if not payment["left_minor"]:
        raise Refusal("All of it was sent back, or is on its way.")
    made = rows.one(conn, RETURN_STRAY, payment | {"reason": reason})
    row = payment | (made or {}) | {"card_last4": card_last4}
    customer, amount = payment["customer_id"], payment["left_minor"]
    _enqueue(conn, row, customer, amount, payment["currency"], Cause(subject=customer))
    return row


def _not_refundable(row: dict[str, Any], invoice: Reference) -> Refusal:
    if row["invoice_id"] is None:
        return invoice.missing()
    if row["invoice_status"] == "paid":
        return Refusal(f"Invoice {row['invoice_id']} was paid without a card, so there is no payment to refund.")
    return invoices.wrong_state(row["invoice_id"], row["invoice_status"])


def _enqueue(
    conn: Connection[Any], row: dict[str, Any], customer_id: int, amount_minor: int, currency: str, cause: Cause
) -> None:
    messages.enqueue(
        conn,
        topic="payment.refund",
        aggregate=f"payment:{row['payment_id']}",
        dedupe_key=f"refund:{row['refund_id']}:1",
        payload={
            "refund_id": row["refund_id"],
            "payment_id": row["payment_id"],
            "invoice_id": row["invoice_id"],
            "customer_id": customer_id,
            "amount_minor": amount_minor,
            "currency": currency,
            "provider_payment_id": row["provider_payment_id"],
            "card_last4": row["card_last4"],
        },
        cause=cause,
    )
