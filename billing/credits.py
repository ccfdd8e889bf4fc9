"""The verbs of a credit balance: use it for an invoice, or pay it out. Balance, entry and invoice in one statement.

The database judges: the balance never below zero, never more than is due, never another currency, and every
balance the sum of its entries.
"""

from typing import Any

from psycopg import Connection

from billing import invoices, rows
from billing.invoices import Reference

APPLY = """
WITH account AS (
    UPDATE public.billing_credit_account a SET balance_minor = a.balance_minor - %(amount_minor)s, entries = a.entries + 1
    WHERE a.customer_id = %(customer_id)s
    RETURNING a.customer_id, a.balance_minor, a.entries
), found AS (
    SELECT i.id, i.status FROM public.billing_invoice i JOIN account ON account.customer_id = i.customer_id
    WHERE i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void'
    FOR NO KEY UPDATE OF i
), lowered AS (
    UPDATE public.billing_invoice i SET amount_due_minor = i.amount_due_minor - %(amount_minor)s FROM found
    WHERE i.id = found.id AND found.status IN ('draft', 'charge_failed')
    RETURNING i.id, i.status, i.amount_due_minor
), entry AS (
    INSERT INTO public.billing_credit_entry
        (customer_id, number, currency, amount_minor, balance_after_minor, kind, invoice_id)
    SELECT account.customer_id, account.entries, %(currency)s, -%(amount_minor)s, account.balance_minor, 'applied', lowered.id
    FROM account, lowered
    RETURNING id
)
SELECT account.balance_minor, found.id AS invoice_id, found.status AS status_before, lowered.status, lowered.amount_due_minor,
       entry.id AS entry_id
FROM account LEFT JOIN found ON true LEFT JOIN lowered ON true LEFT JOIN entry ON true
"""
PAY_OUT = """
WITH account AS (
    UPDATE public.billing_credit_account a SET balance_minor = a.balance_minor - %(amount_minor)s, entries = a.entries + 1
    WHERE a.customer_id = %(customer_id)s
    RETURNING a.customer_id, a.balance_minor, a.entries
)
INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)
SELECT account.customer_id, account.entries, %(currency)s, -%(amount_minor)s, account.balance_minor, 'paid_out' FROM account
RETURNING id AS entry_id, balance_after_minor AS balance_minor
"""


def apply(conn: Connection[Any], *, invoice: Reference, amount_minor: int, currency: str) -> dict[str, Any]:
    """Use credit for an invoice that is not being charged, which lowers what is due; amounts in minor units."""
    found = rows.one(conn, APPLY, invoice.parameters() | {"amount_minor": amount_minor, "currency": currency})
    row = invoices.changed(found, invoice=invoice, by="status")
    return {
        "credit_entry_id": row["entry_id"],
        "applied_minor": amount_minor,
        "credit_balance_minor": row["balance_minor"],
        "invoice_id": row["invoice_id"],
        "invoice_status": row["status"],
        "amount_due_minor": row["amount_due_minor"],
        "currency": currency,
    }


def pay_out(conn: Connection[Any], *, customer_id: int, amount_minor: int, currency: str) -> dict[str, Any]:
    """Deduct credit that leaves in another way, such as a refund to the card; amounts in minor units."""
    asked = {"customer_id": customer_id, "amount_minor": amount_minor, "currency": currency}
    row = rows.one(conn, PAY_OUT, asked)
    if row is None:
        raise invoices.unknown_customer(customer_id)
    return {
        "credit_entry_id": row["entry_id"],
        "paid_out_minor": amount_minor,
        "credit_balance_minor": row["balance_minor"],
        "currency": currency,
    }
