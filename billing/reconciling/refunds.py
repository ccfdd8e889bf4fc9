"""Refunds that stand otherwise than their message, or have none."""

from collections.abc import Iterator

from billing import money
from billing.reconciling import following
from billing.reconciling.following import NONE
from billing.repairs import Refund
from ledger.reconciling import Check, Disagreement, Fact, Looking, Row

REFUNDS = """
SELECT * FROM (
    SELECT r.id, r.customer_id, r.currency, r.amount_minor, r.status, r.payment_id AS payment,
        m.id AS message, m.state, m.provider_status, m.thread, m.ai_message_id, e.on_behalf_of,
        p.amount_minor AS paid_minor, others.amount_minor AS others_minor, others.queued AS others_queued,
        CASE WHEN m.id IS NULL THEN 'none' WHEN m.state = 'rejected' THEN 'refused' WHEN m.state = 'cancelled' THEN 'withdrawn'
             WHEN m.state <> 'succeeded' THEN 'queued' WHEN m.provider_status IN ('failed', 'canceled') THEN 'reversed'
             ELSE 'confirmed' END AS should
    FROM public.billing_refund r
    LEFT JOIN public.billing_payment p ON p.id = r.payment_id
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(o.amount_minor), 0)::bigint AS amount_minor, coalesce(bool_or(o.status = 'queued'), false) AS queued
        FROM public.billing_refund o
        WHERE o.payment_id = r.payment_id AND o.id <> r.id AND o.status IN ('queued', 'confirmed')) others
    LEFT JOIN public.outbox_message m ON m.dedupe_key = 'refund:' || r.id || ':1'
    LEFT JOIN public.ledger_execution e
        ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
    WHERE (%(after)s::bigint IS NULL OR r.id > %(after)s) AND r.id <= %(upto)s
) AS r
WHERE r.status <> r.should ORDER BY r.id
"""


def refunds(looking: Looking) -> Iterator[Disagreement]:
    """Yield the refunds that do not stand as their message does."""
    for row in looking.chunks(REFUNDS, table="billing_refund"):
        amount = money.format(row["amount_minor"], row["currency"])
        exits, why_not = following.exits(_books(row))
        yield Disagreement(
            object=f"refund:{row['id']}",
            about=f"Refund {amount}",
            sentence=f"Refund {row['id']} of {amount} is {row['status']} here, but {_told(row)}.",
            detail=why_not,
            facts=(
                Fact(name="Amount", ours=amount, theirs=amount if row["message"] else NONE),
                Fact(name="Status", ours=row["status"], theirs=row["should"], differs=True),
            ),
            exits=exits,
            amount_minor=row["amount_minor"],
            **following.about(row),
        )


def _books(row: Row) -> Refund | None:
    if row["message"] is None:
        return None
    same = ("currency", "status", "payment", "amount_minor", "state", "provider_status")
    others = ("paid_minor", "others_minor", "others_queued")
    return Refund(refund=row["id"], **{name: row[name] for name in same + others})


def _told(row: Row) -> str:
    if row["should"] == "reversed":
        return "its request succeeded, and was taken back"
    return "its request succeeded" if row["state"] == "succeeded" else f"its request is {following.state(row)}"


CHECKS = (
    Check(
        name="billing.refunds",
        holds="Refunds stand as their requests do.",
        mark=following.DIFFERS,
        ours="The refund says",
        theirs="Its request says",
        look=refunds,
    ),
)
