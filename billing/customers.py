"""The verb of a customer: look everything up that the agent may need, in one statement, bounded."""

from typing import Any

from psycopg import Connection

from billing import invoices, rows

LOOK_UP = """
SELECT c.id AS customer_id, c.name, c.currency, c.card_last4, a.balance_minor AS credit_balance_minor,
    coalesce((SELECT jsonb_agg(to_jsonb(o) ORDER BY o.billing_period) FROM (
        SELECT i.id AS invoice_id, i.billing_period, i.description, i.status, i.amount_minor, i.amount_due_minor
        FROM public.billing_invoice i WHERE i.customer_id = c.id AND i.status NOT IN ('paid', 'void')
        ORDER BY i.billing_period DESC LIMIT 20) o), '[]') AS open_invoices,
    coalesce((SELECT jsonb_agg(to_jsonb(l) ORDER BY l.invoice_id DESC) FROM (
        SELECT i.id AS invoice_id, i.billing_period, i.description, i.status, i.amount_minor, i.amount_due_minor, i.credited_minor
        FROM public.billing_invoice i WHERE i.customer_id = c.id ORDER BY i.id DESC LIMIT 10) l), '[]') AS last_invoices,
    coalesce((SELECT jsonb_agg(to_jsonb(r) ORDER BY r.invoice_id DESC) FROM (
        SELECT p.invoice_id, i.billing_period, p.amount_minor, p.refunded_minor,
               p.amount_minor - p.refunded_minor AS refundable_minor, q.id IS NOT NULL AS refund_under_way
        FROM public.billing_payment p
        JOIN public.billing_invoice i ON i.customer_id = p.customer_id AND i.id = p.invoice_id
        LEFT JOIN public.billing_refund q ON q.payment_id = p.id AND q.status = 'queued'
        WHERE p.customer_id = c.id AND p.refunded_minor < p.amount_minor
        ORDER BY p.id DESC LIMIT 10) r), '[]') AS refundable_payments
FROM public.billing_customer c JOIN public.billing_credit_account a ON a.customer_id = c.id
WHERE c.id = %(customer_id)s
"""


def look_up(conn: Connection[Any], *, customer_id: int) -> dict[str, Any]:
    """Return the customer's balance, at most 20 open and the last 10 invoices, and 10 payments that can be refunded."""
    row = rows.one(conn, LOOK_UP, {"customer_id": customer_id})
    if row is None:
        raise invoices.unknown_customer(customer_id)
    return row
