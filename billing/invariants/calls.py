"""Executed calls of billing's tools: what they queued is in the outbox, what they moved is counted."""

from collections.abc import Mapping
from typing import Any

from billing import tools
from ledger.invariants import Invariant

QUEUED = """
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, count(m.id) AS messages FROM public.ledger_execution e
LEFT JOIN public.outbox_message m ON m.thread = e.thread AND m.ai_message_id = e.ai_message_id AND m.call_index = e.call_index
    AND m.topic = CASE e.tool WHEN 'QueueCharge' THEN 'payment.charge' ELSE 'payment.refund' END AND m.subject = e.subject
    AND m.payload -> 'amount_minor' = e.arguments -> 'amount_minor' AND m.payload -> 'currency' = e.arguments -> 'currency'
WHERE e.tool IN ('QueueCharge', 'QueueRefund')
GROUP BY e.thread, e.ai_message_id, e.call_index, e.tool, e.arguments
HAVING count(m.id) <> CASE WHEN (e.arguments ->> 'amount_minor')::bigint > 0 THEN 1 ELSE 0 END
"""
COUNTED = """
WITH moved AS (
    SELECT scope, currency, sum(amount)::bigint AS amount FROM (
        SELECT unnest(ARRAY['customer:' || subject, 'staff:' || on_behalf_of, 'conversation:' || thread]) AS scope,
            arguments ->> 'currency' AS currency, (arguments ->> 'amount_minor')::bigint AS amount
        FROM public.ledger_execution WHERE tool = ANY(%(limited)s)) AS each_call
    GROUP BY scope, currency
), counted AS (
    SELECT scope, currency, sum(amount)::bigint AS amount FROM public.agent_window GROUP BY scope, currency
)
SELECT scope, currency, moved.amount AS moved_minor, counted.amount AS counted_minor
FROM moved FULL JOIN counted USING (scope, currency)
WHERE coalesce(moved.amount, 0) <> coalesce(counted.amount, 0)
"""


def limited() -> Mapping[str, Any]:
    """Return the names of the tools whose amounts are counted."""
    return {"limited": [tool.name for tool in tools.TOOLS if tool.hold_above is not None]}


INVARIANTS = (
    Invariant(
        name="billing.queued_call_has_message",
        guarantee=4,
        says="Every executed call that queues a charge or refund has exactly one message, of its customer and amount.",
        query=QUEUED,
    ),
    Invariant(
        name="billing.amounts_are_counted",
        guarantee=8,
        says="What calls moved, per customer, staff member and conversation, is exactly what the sums behind the limits counted.",
        query=COUNTED,
        values=limited,
    ),
)
