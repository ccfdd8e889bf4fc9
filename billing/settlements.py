"""What a final outcome of a charge or a refund does to the customer's books. Each verb may be repeated without effect.

They run as the outbox login inside the settling transaction, whose `backstop.subject` is the customer.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection


class BooksDisagree(Exception):
    """The books are not in a state in which this outcome can be applied."""


def charge_succeeded(conn: Connection[Any], *, charge: Mapping[str, Any], provider_payment_id: str) -> None:
    """Record the payment and mark the invoice paid; `charge` is the message's payload."""
    conn.execute(
        "INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id)"
        " SELECT %s, %s, %s, %s, %s WHERE NOT EXISTS (SELECT 1 FROM public.billing_payment WHERE provider_payment_id = %s)",
        (
            charge["customer_id"],
            charge["invoice_id"],
            charge["currency"],
            charge["amount_minor"],
            provider_payment_id,
            provider_payment_id,
        ),
    )
    _move_invoice(conn, invoice=charge["invoice_id"], status="paid")


def charge_rejected(conn: Connection[Any], *, charge: Mapping[str, Any]) -> None:
    """Mark the invoice's charge failed: it may be charged again or voided."""
    _move_invoice(conn, invoice=charge["invoice_id"], status="charge_failed")


def charge_withdrawn(conn: Connection[Any], *, charge: Mapping[str, Any]) -> None:
    """Give the invoice back as a draft: the charge never left."""
    _move_invoice(conn, invoice=charge["invoice_id"], status="draft")


def refund_succeeded(conn: Connection[Any], *, refund: Mapping[str, Any], provider_refund_id: str) -> None:
    """Mark the refund confirmed; `refund` is the message's payload."""
    _move_refund(conn, refund=refund["refund_id"], status="confirmed", provider_refund_id=provider_refund_id)


def refund_rejected(conn: Connection[Any], *, refund: Mapping[str, Any], provider_refund_id: str | None) -> None:
    """Mark the refund refused and give its amount back to what may be refunded of the payment."""
    if _move_refund(conn, refund=refund["refund_id"], status="refused", provider_refund_id=provider_refund_id):
        _give_back(conn, refund=refund)


def refund_withdrawn(conn: Connection[Any], *, refund: Mapping[str, Any]) -> None:
    """Mark the refund withdrawn, as it never left, and give its amount back as above."""
    if _move_refund(conn, refund=refund["refund_id"], status="withdrawn", provider_refund_id=None):
        _give_back(conn, refund=refund)


def _move_invoice(conn: Connection[Any], *, invoice: int, status: str) -> None:
    """Move an invoice from charge_queued; a repeat finds it moved; anything else is an error."""
    moved = conn.execute(
        "UPDATE public.billing_invoice SET status = %s, paid_at = CASE WHEN %s = 'paid' THEN now() END"
        " WHERE id = %s AND status = 'charge_queued'",
        (status, status, invoice),
    )
    if moved.rowcount != 1:
        _expect(conn, "SELECT status FROM public.billing_invoice WHERE id = %s", invoice, status, what="invoice")


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


def _expect(conn: Connection[Any], query: Any, key: int, status: str, *, what: str) -> None:
    """Raise BooksDisagree unless the row is there and already has the status."""
    found = conn.execute(query, (key,)).fetchone()
    if found is None or found[0] != status:
        raise BooksDisagree(f"{what} {key} is {found[0] if found else 'not there'}, so it cannot become {status}")
