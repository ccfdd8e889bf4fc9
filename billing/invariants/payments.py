"""Charges and refunds: invoices, payments and refunds stand as their messages to the provider do."""

from collections.abc import Mapping
from typing import Any

from billing import money
from ledger.invariants import Invariant

REFUNDED = """
SELECT p.id AS payment_id, p.amount_minor, p.refunded_minor, coalesce(r.total_minor, 0) AS refunds_minor
FROM public.billing_payment p
LEFT JOIN (SELECT payment_id, sum(amount_minor)::bigint AS total_minor FROM public.billing_refund
           WHERE status IN ('queued', 'confirmed') GROUP BY payment_id) r ON r.payment_id = p.id
WHERE p.refunded_minor <> coalesce(r.total_minor, 0) OR p.refunded_minor > p.amount_minor
"""
PAID = """
SELECT i.id AS invoice_id, i.status, i.amount_due_minor, coalesce(p.number, 0) AS payments, p.total_minor AS paid_minor
FROM public.billing_invoice i
LEFT JOIN (SELECT invoice_id, count(*) AS number, sum(amount_minor)::bigint AS total_minor FROM public.billing_payment
           WHERE NOT stray GROUP BY invoice_id) p ON p.invoice_id = i.id
WHERE CASE i.status WHEN 'paid'
    THEN ROW(i.amount_due_minor, least(i.amount_due_minor, 1))
        IS DISTINCT FROM ROW(coalesce(p.total_minor, 0), coalesce(p.number, 0))
    ELSE p.number IS NOT NULL END
"""
# Money that came when nothing was owed pays nothing; an earlier charge of an invoice may succeed after its last was refused.
STANDS = """
SELECT i.id AS invoice_id, i.status, i.charge_attempt, coalesce(counted.number, 0) AS charges, m.id AS message_id, m.state
FROM public.billing_invoice i
LEFT JOIN (SELECT aggregate, count(*) AS number FROM public.outbox_message WHERE topic = 'payment.charge' GROUP BY aggregate)
    AS counted ON counted.aggregate = 'invoice:' || i.id
LEFT JOIN LATERAL (
    SELECT m.id, CASE WHEN EXISTS (SELECT FROM public.billing_payment p WHERE p.provider_payment_id = m.provider_id AND p.stray)
        THEN 'stray' ELSE m.state END AS state, m.state IN ('rejected', 'cancelled') AND EXISTS (
            SELECT FROM public.outbox_message e WHERE e.topic = m.topic AND e.aggregate = m.aggregate AND e.id < m.id
            AND e.state = 'succeeded') AS earlier
    FROM public.outbox_message m WHERE m.dedupe_key = 'charge:invoice:' || i.id || ':' || i.charge_attempt) m ON true
WHERE i.charge_attempt <> coalesce(counted.number, 0) OR CASE i.status
    WHEN 'charge_queued' THEN coalesce(m.state, 'none') IN ('none', 'succeeded', 'rejected', 'cancelled')
    WHEN 'charge_failed' THEN coalesce(m.state, 'none') NOT IN ('rejected', 'stray')
    WHEN 'paid' THEN CASE WHEN i.amount_due_minor > 0
        THEN coalesce(m.state, 'none') NOT IN ('succeeded', 'stray') AND NOT coalesce(m.earlier, false)
        ELSE coalesce(m.state, 'none') NOT IN ('none', 'rejected', 'cancelled', 'stray') END
    WHEN 'draft' THEN coalesce(m.state, 'none') NOT IN ('none', 'cancelled', 'stray')
    ELSE coalesce(m.state, 'none') NOT IN ('none', 'cancelled', 'rejected', 'stray') END
"""
PAYMENT = """
SELECT m.id AS message_id, p.id AS payment_id, coalesce(m.provider_id, p.provider_payment_id) AS provider_id,
    m.amount_minor AS charged_minor, p.amount_minor AS paid_minor
FROM (SELECT id, provider_id, (payload ->> 'invoice_id')::bigint AS invoice_id,
          (payload ->> 'customer_id')::bigint AS customer_id, (payload ->> 'amount_minor')::bigint AS amount_minor,
          payload ->> 'currency' AS currency
      FROM public.outbox_message WHERE topic = 'payment.charge' AND state = 'succeeded') m
FULL JOIN public.billing_payment p ON p.provider_payment_id = m.provider_id
WHERE ROW(m.invoice_id, m.customer_id, m.amount_minor, m.currency)
    IS DISTINCT FROM ROW(p.invoice_id, p.customer_id, p.amount_minor, p.currency)
"""
REFUND = """
SELECT r.id AS refund_id, r.status, m.id AS message_id, m.state, r.amount_minor, m.amount_minor AS sent_minor
FROM public.billing_refund r
FULL JOIN (SELECT id, state, provider_id, (payload ->> 'refund_id')::bigint AS refund_id,
               (payload ->> 'payment_id')::bigint AS payment_id, (payload ->> 'customer_id')::bigint AS customer_id,
               (payload ->> 'amount_minor')::bigint AS amount_minor, payload ->> 'currency' AS currency
           FROM public.outbox_message WHERE topic = 'payment.refund') m ON m.refund_id = r.id
WHERE ROW(m.payment_id, m.customer_id, m.amount_minor, m.currency)
        IS DISTINCT FROM ROW(r.payment_id, r.customer_id, r.amount_minor, r.currency)
    OR r.status <> CASE m.state WHEN 'succeeded' THEN CASE r.status WHEN 'reversed' THEN 'reversed' ELSE 'confirmed' END
                                WHEN 'rejected' THEN 'refused' WHEN 'cancelled' THEN 'withdrawn' ELSE 'queued' END
    OR (m.state = 'succeeded' AND r.provider_refund_id IS DISTINCT FROM m.provider_id)
"""
REVERSED = """
SELECT r.id AS refund_id, r.status, v.id AS reversal_id, r.amount_minor, v.amount_minor AS reversed_minor
FROM public.billing_refund r FULL JOIN public.billing_refund_reversal v ON v.refund_id = r.id
WHERE (r.status = 'reversed') IS DISTINCT FROM (v.id IS NOT NULL) OR v.amount_minor <> r.amount_minor
"""
# A person may withdraw a note, and the provider may refuse it; what came back before its invoice was linked is never credited.
CREDITED = """
SELECT r.id AS refund_id, r.status, p.provider_invoice_id, m.id AS message_id, m.state, r.amount_minor,
    m.params ->> 'amount' AS credited, r.provider_credit_note_id
FROM public.billing_refund r JOIN public.billing_payment p ON p.id = r.payment_id
FULL JOIN (SELECT id, state, dedupe_key, provider_id, steps #> '{0,params}' AS params,
               (payload ->> 'refund_id')::bigint AS refund_id
           FROM public.outbox_message WHERE topic = 'payment.credit_note') m ON m.refund_id = r.id
WHERE (r.status = 'confirmed' AND p.provider_invoice_id IS NOT NULL AND m.id IS NULL)
    OR (m.id IS NOT NULL AND (coalesce(r.status, '') NOT IN ('confirmed', 'reversed')
        OR ROW(m.dedupe_key, m.params ->> 'invoice', m.params #>> '{refunds,0,refund}', m.params -> 'refunds' -> 1,
               (m.params ->> 'amount')::bigint, (m.params #>> '{refunds,0,amount_refunded}')::bigint)
            IS DISTINCT FROM ROW('credit_note:' || r.id || ':1', p.provider_invoice_id, r.provider_refund_id, NULL::jsonb,
               r.amount_minor * CASE WHEN r.currency = ANY(%(padded)s) THEN 100 ELSE 1 END,
               r.amount_minor * CASE WHEN r.currency = ANY(%(padded)s) THEN 100 ELSE 1 END)))
    OR r.provider_credit_note_id IS DISTINCT FROM CASE WHEN m.state = 'succeeded' THEN m.provider_id END
"""
SETTLED = """
SELECT m.id AS message_id, m.topic, m.state FROM public.outbox_message m
WHERE m.topic IN ('payment.charge', 'payment.refund') AND m.state IN ('succeeded', 'rejected', 'cancelled')
  AND NOT EXISTS (SELECT FROM public.ledger_row_change c WHERE c.message_id = m.id)
"""
REQUEST = """
SELECT m.id AS message_id, m.topic, m.payload ->> 'amount_minor' AS amount_minor, m.steps #>> '{0,params,amount}' AS requested
FROM public.outbox_message m
WHERE m.topic IN ('payment.charge', 'payment.refund') AND (
    ROW((m.steps #>> '{0,params,amount}')::bigint, m.steps #>> '{0,params,metadata,backstop_uid}', m.subject)
        IS DISTINCT FROM ROW(
            (m.payload ->> 'amount_minor')::bigint * CASE WHEN m.payload ->> 'currency' = ANY(%(padded)s) THEN 100 ELSE 1 END,
            m.uid::text, (m.payload ->> 'customer_id')::bigint)
    OR CASE m.topic WHEN 'payment.charge'
        THEN ROW(m.steps #>> '{0,params,currency}', m.steps #>> '{0,params,customer}')
            IS DISTINCT FROM ROW(lower(m.payload ->> 'currency'), m.payload ->> 'provider_customer_id')
        ELSE m.steps #>> '{0,params,payment_intent}' IS DISTINCT FROM m.payload ->> 'provider_payment_id' END)
"""


def padded() -> Mapping[str, Any]:
    """Return the currencies that the provider wants with two decimals more than they have."""
    return {"padded": sorted(money.PADDED_BY_PROVIDER)}


INVARIANTS = (
    Invariant(
        name="billing.refunds_within_payment",
        guarantee=5,
        says="The queued and confirmed refunds of a payment add up to what it says was refunded, and to no more than was paid.",
        query=REFUNDED,
    ),
    Invariant(
        name="billing.invoice_paid_once",
        guarantee=5,
        says=(
            "A paid invoice has exactly one payment, of exactly what was due (none if nothing was); any other invoice has none."
            " Money that came when nothing was owed is known as such."
        ),
        query=PAID,
    ),
    Invariant(
        name="billing.invoice_stands_as_its_charge",
        guarantee=4,
        says="An invoice's status fits the state of the message of its last charge, and it counts all its charges.",
        query=STANDS,
    ),
    Invariant(
        name="billing.payment_is_a_settled_charge",
        guarantee=5,
        says="Every charge that succeeded has its payment in the books, of the same amount, and every payment its charge.",
        query=PAYMENT,
    ),
    Invariant(
        name="billing.refund_stands_as_its_message",
        guarantee=4,
        says="Every refund has one message, of the same amount, and its status fits that message's state.",
        query=REFUND,
    ),
    Invariant(
        name="billing.reversal_is_of_its_refund",
        guarantee=5,
        says="Every refund that was confirmed and came back has one reversal, of its amount, and no other refund has any.",
        query=REVERSED,
    ),
    Invariant(
        name="billing.refund_is_credited_once",
        guarantee=5,
        says=(
            "A refund that went out of a payment of an invoice at the provider has one message for its credit note there, of that"
            " invoice, of its amount, and linked to it; no other refund has any. It keeps the id of its note."
        ),
        query=CREDITED,
        values=padded,
    ),
    Invariant(
        name="billing.settling_changed_the_books",
        guarantee=4,
        says="Every charge or refund that came to its end has changed the books when it did.",
        query=SETTLED,
    ),
    Invariant(
        name="billing.request_is_what_was_queued",
        guarantee=5,
        says="What is sent to the provider has the amount, currency, customer and payment that were queued.",
        query=REQUEST,
        values=padded,
    ),
)
