"""Credit: every balance is the sum of its entries, and every entry has its reason."""

from ledger.invariants import Invariant

BALANCE = """
SELECT customer_id, a.balance_minor, e.total_minor AS sum_of_entries_minor, a.entries AS entries_counted, e.number AS entries
FROM public.billing_credit_account a
FULL JOIN (SELECT customer_id, sum(amount_minor)::bigint AS total_minor, count(*) AS number
           FROM public.billing_credit_entry GROUP BY customer_id) e USING (customer_id)
WHERE ROW(a.balance_minor, a.entries) IS DISTINCT FROM ROW(coalesce(e.total_minor, 0), coalesce(e.number, 0))
"""
CHAIN = """
SELECT customer_id, number, place, amount_minor, before_minor, balance_after_minor
FROM (SELECT customer_id, number, amount_minor, balance_after_minor, row_number() OVER ordered AS place,
          lag(balance_after_minor, 1, 0::bigint) OVER ordered AS before_minor
      FROM public.billing_credit_entry WINDOW ordered AS (PARTITION BY customer_id ORDER BY number)) AS entry
WHERE before_minor + amount_minor <> balance_after_minor OR number <> place OR balance_after_minor < 0
"""
KIND = """
SELECT id AS entry_id, customer_id, kind, amount_minor, invoice_id, credit_memo_id FROM public.billing_credit_entry
WHERE (amount_minor > 0) <> (kind IN ('opening', 'memo', 'returned'))
    OR (invoice_id IS NOT NULL) <> (kind IN ('memo', 'applied', 'returned')) OR (credit_memo_id IS NOT NULL) <> (kind = 'memo')
"""
MEMO = """
SELECT m.id AS credit_memo_id, e.id AS entry_id, m.amount_minor AS memo_minor, e.amount_minor AS entry_minor
FROM public.billing_credit_memo m
FULL JOIN (SELECT * FROM public.billing_credit_entry WHERE kind = 'memo') e ON e.credit_memo_id = m.id
WHERE ROW(m.customer_id, m.invoice_id, m.amount_minor) IS DISTINCT FROM ROW(e.customer_id, e.invoice_id, e.amount_minor)
UNION ALL
SELECT credit_memo_id, max(id), NULL, sum(amount_minor)::bigint FROM public.billing_credit_entry
WHERE kind = 'memo' GROUP BY credit_memo_id HAVING count(*) > 1
"""
CAP = """
SELECT i.id AS invoice_id, i.amount_minor, i.credited_minor, coalesce(m.total_minor, 0) AS memos_minor
FROM public.billing_invoice i
LEFT JOIN (SELECT invoice_id, sum(amount_minor)::bigint AS total_minor FROM public.billing_credit_memo GROUP BY invoice_id) m
    ON m.invoice_id = i.id
WHERE i.credited_minor <> coalesce(m.total_minor, 0) OR i.credited_minor > i.amount_minor
"""
DUE = """
SELECT i.id AS invoice_id, i.status, i.amount_minor, coalesce(e.used_minor, 0) AS used_minor, i.amount_due_minor
FROM public.billing_invoice i
LEFT JOIN (SELECT invoice_id, -sum(amount_minor)::bigint AS used_minor FROM public.billing_credit_entry
           WHERE kind IN ('applied', 'returned') GROUP BY invoice_id) e ON e.invoice_id = i.id
WHERE i.amount_due_minor <> i.amount_minor - coalesce(e.used_minor, 0)
"""
ACCOUNT = """
SELECT c.id AS customer_id, c.name FROM public.billing_customer c
WHERE NOT EXISTS (SELECT FROM public.billing_credit_account a WHERE a.customer_id = c.id)
"""

INVARIANTS = (
    Invariant(
        name="billing.balance_equals_entries",
        guarantee=1,
        says="A customer's credit balance is the sum of its entries, and the account counts all of them.",
        query=BALANCE,
    ),
    Invariant(
        name="billing.entries_chain",
        guarantee=1,
        says="Each credit entry follows the one before it: without a gap, its balance right and never negative.",
        query=CHAIN,
    ),
    Invariant(
        name="billing.entry_fits_its_kind",
        guarantee=1,
        says="A credit entry raises or lowers the balance, and names an invoice or a memo, as its kind says.",
        query=KIND,
    ),
    Invariant(
        name="billing.memo_raised_the_balance",
        guarantee=1,
        says="Every credit memo has exactly one entry, of the same customer, invoice and amount, and every such entry its memo.",
        query=MEMO,
    ),
    Invariant(
        name="billing.memos_within_invoice",
        guarantee=1,
        says="The credit memos of an invoice add up to what it says was credited, and to no more than its amount.",
        query=CAP,
    ),
    Invariant(
        name="billing.amount_due_adds_up",
        guarantee=1,
        says="What is due of an invoice is its amount less the credit that it used and did not give back.",
        query=DUE,
    ),
    Invariant(
        name="billing.customer_has_account",
        guarantee=1,
        says="Every customer has a credit account.",
        query=ACCOUNT,
    ),
)
