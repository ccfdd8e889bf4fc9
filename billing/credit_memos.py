"""The verb of a credit memo: a document for an invoice, which raises the credit balance by the same amount."""

from typing import Any

from psycopg import Connection

from billing import invoices, rows
from billing.invoices import Reference

ISSUE = """
WITH account AS (
    UPDATE public.billing_credit_account a SET balance_minor = a.balance_minor + %(amount_minor)s, entries = a.entries + 1
    WHERE a.customer_id = %(customer_id)s
    RETURNING a.customer_id, a.balance_minor, a.entries
), found AS (
    SELECT i.id, i.status FROM public.billing_invoice i JOIN account ON account.customer_id = i.customer_id
    WHERE i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void'
    FOR NO KEY UPDATE OF i
), credited AS (
    UPDATE public.billing_invoice i SET credited_minor = i.credited_minor + %(amount_minor)s FROM found
    WHERE i.id = found.id AND found.status <> 'void'
    RETURNING i.id, i.credited_minor
), memo AS (
    INSERT INTO public.billing_credit_memo (customer_id, invoice_id, currency, amount_minor, reason)
    SELECT account.customer_id, credited.id, %(currency)s, %(amount_minor)s, %(reason)s FROM account, credited
    RETURNING id
), entry AS (
    INSERT INTO public.billing_credit_entry
        (customer_id, number, currency, amount_minor, balance_after_minor, kind, invoice_id, credit_memo_id)
    SELECT account.customer_id, account.entries, %(currency)s, %(amount_minor)s, account.balance_minor, 'memo',
           credited.id, memo.id
    FROM account, credited, memo
)
SELECT account.balance_minor, found.id AS invoice_id, found.status AS status_before, credited.credited_minor, memo.id AS memo_id
FROM account LEFT JOIN found ON true LEFT JOIN credited ON true LEFT JOIN memo ON true
"""


def issue(conn: Connection[Any], *, invoice: Reference, amount_minor: int, currency: str, reason: str) -> dict[str, Any]:
    """Give credit for an invoice that is not void; the database caps all memos of an invoice at its amount."""
    asked = {"amount_minor": amount_minor, "currency": currency, "reason": reason}
    row = invoices.changed(rows.one(conn, ISSUE, invoice.parameters() | asked), invoice=invoice, by="memo_id")
    return {
        "credit_memo_id": row["memo_id"],
        "invoice_id": row["invoice_id"],
        "amount_minor": amount_minor,
        "credited_minor": row["credited_minor"],
        "credit_balance_minor": row["balance_minor"],
        "currency": currency,
    }
