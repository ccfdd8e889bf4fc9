"""The verbs of a customer: look everything up that the agent may need, bounded; create one. One statement each."""

from dataclasses import asdict, dataclass
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
        WHERE p.customer_id = c.id AND p.refunded_minor < p.amount_minor AND NOT p.stray
        ORDER BY p.id DESC LIMIT 10) r), '[]') AS refundable_payments
FROM public.billing_customer c JOIN public.billing_credit_account a ON a.customer_id = c.id
WHERE c.id = %(customer_id)s
"""
CREATE = """
WITH customer AS (
    INSERT INTO public.billing_customer
        (name, email, currency, terms_days, provider_customer_id, provider_payment_method, card_last4)
    VALUES (%(name)s, %(email)s, %(currency)s, %(terms_days)s,
            %(provider_customer_id)s, %(provider_payment_method)s, %(card_last4)s)
    RETURNING id, currency
), account AS (
    INSERT INTO public.billing_credit_account (customer_id, currency, balance_minor, entries)
    SELECT id, currency, %(opening_minor)s, CASE WHEN %(opening_minor)s = 0 THEN 0 ELSE 1 END FROM customer
), entry AS (
    INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)
    SELECT id, 1, currency, %(opening_minor)s, %(opening_minor)s, 'opening' FROM customer WHERE %(opening_minor)s <> 0
)
SELECT id FROM customer
"""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What the provider keeps of a customer: its ids, and the digits that people know the card by."""

    provider_customer_id: str | None = None
    provider_payment_method: str | None = None
    card_last4: str | None = None


NO_CARD = Card()


def create(
    conn: Connection[Any],
    *,
    name: str,
    email: str,
    currency: str,
    opening_minor: int = 0,
    terms_days: int = 14,
    card: Card = NO_CARD,
) -> int:
    """Create a customer with a credit account and its opening balance (minor units), and return the id; as the owner."""
    asked = {"name": name, "email": email, "currency": currency, "opening_minor": opening_minor, "terms_days": terms_days}
    row = rows.one(conn, CREATE, asked | asdict(card))
    assert row is not None, "an INSERT returns its row or raises"
    return int(row["id"])


def look_up(conn: Connection[Any], *, customer_id: int) -> dict[str, Any]:
    """Return the customer's balance, at most 20 open and the last 10 invoices, and 10 payments that can be refunded."""
    row = rows.one(conn, LOOK_UP, {"customer_id": customer_id})
    if row is None:
        raise invoices.unknown_customer(customer_id)
    return row
