"""The books as a whole: what belongs together agrees, and no row differs from what was recorded of its last change."""

from ledger.invariants import Invariant

CURRENCY = """
SELECT 'credit account' AS what, a.customer_id AS id, a.currency, c.currency AS currency_of_parent
FROM public.billing_credit_account a JOIN public.billing_customer c ON c.id = a.customer_id WHERE a.currency <> c.currency
UNION ALL
SELECT 'invoice', i.id, i.currency, c.currency
FROM public.billing_invoice i JOIN public.billing_customer c ON c.id = i.customer_id WHERE i.currency <> c.currency
UNION ALL
SELECT 'payment', p.id, p.currency, i.currency
FROM public.billing_payment p JOIN public.billing_invoice i ON i.id = p.invoice_id WHERE p.currency <> i.currency
UNION ALL
SELECT 'refund', r.id, r.currency, p.currency
FROM public.billing_refund r JOIN public.billing_payment p ON p.id = r.payment_id WHERE r.currency <> p.currency
UNION ALL
SELECT 'refund reversal', v.id, v.currency, r.currency
FROM public.billing_refund_reversal v JOIN public.billing_refund r ON r.id = v.refund_id WHERE v.currency <> r.currency
UNION ALL
SELECT 'credit memo', m.id, m.currency, i.currency
FROM public.billing_credit_memo m JOIN public.billing_invoice i ON i.id = m.invoice_id WHERE m.currency <> i.currency
UNION ALL
SELECT 'credit entry', e.id, e.currency, a.currency
FROM public.billing_credit_entry e JOIN public.billing_credit_account a USING (customer_id) WHERE e.currency <> a.currency
"""
CUSTOMER = """
SELECT 'payment' AS what, p.id, p.customer_id, i.customer_id AS customer_of_parent
FROM public.billing_payment p LEFT JOIN public.billing_invoice i ON i.id = p.invoice_id
WHERE i.customer_id IS DISTINCT FROM p.customer_id
UNION ALL
SELECT 'refund', r.id, r.customer_id, p.customer_id
FROM public.billing_refund r LEFT JOIN public.billing_payment p ON p.id = r.payment_id
WHERE p.customer_id IS DISTINCT FROM r.customer_id
UNION ALL
SELECT 'refund reversal', v.id, v.customer_id, r.customer_id
FROM public.billing_refund_reversal v LEFT JOIN public.billing_refund r ON r.id = v.refund_id
WHERE r.customer_id IS DISTINCT FROM v.customer_id
UNION ALL
SELECT 'credit memo', m.id, m.customer_id, i.customer_id
FROM public.billing_credit_memo m LEFT JOIN public.billing_invoice i ON i.id = m.invoice_id
WHERE i.customer_id IS DISTINCT FROM m.customer_id
UNION ALL
SELECT 'credit entry', e.id, e.customer_id, i.customer_id
FROM public.billing_credit_entry e LEFT JOIN public.billing_invoice i ON i.id = e.invoice_id
WHERE e.invoice_id IS NOT NULL AND i.customer_id IS DISTINCT FROM e.customer_id
"""
KEYS = {
    "customer": "id",
    "credit_account": "customer_id",
    "invoice": "id",
    "payment": "id",
    "refund": "id",
    "refund_reversal": "id",
    "credit_memo": "id",
    "credit_entry": "id",
}
# One table's rows beside the newest change of each; a change holds the row as it was written.
AS_CHANGED = """
SELECT 'billing_{table}' AS "table", coalesce(now.{key}, last.key) AS id, last.change_id, c.login, c.operation
FROM public.billing_{table} AS now
FULL JOIN (
    SELECT (coalesce(after, before) ->> '{key}')::bigint AS key, max(id) AS change_id FROM public.ledger_row_change
    WHERE table_name = 'billing_{table}' GROUP BY 1
) AS last ON last.key = now.{key}
LEFT JOIN public.ledger_row_change c ON c.id = last.change_id
WHERE now IS DISTINCT FROM jsonb_populate_record(NULL::public.billing_{table}, c.after)
"""


def as_changed() -> str:
    """Return the query about every watched table."""
    return "UNION ALL".join(AS_CHANGED.format(table=table, key=key) for table, key in KEYS.items())


INVARIANTS = (
    Invariant(
        name="billing.currency_of_parent",
        guarantee=1,
        says="Accounts, invoices, payments, refunds, reversals, memos and entries have the currency of what they belong to.",
        query=CURRENCY,
    ),
    Invariant(
        name="billing.customer_of_parent",
        guarantee=7,
        says="Payments, refunds, reversals, memos and entries belong to the customer of what they name.",
        query=CUSTOMER,
    ),
    Invariant(
        name="billing.books_as_last_changed",
        guarantee=10,
        says="Every row of the books is as the record of its last change says: none was changed, added or removed unseen.",
        query=as_changed,
    ),
)
