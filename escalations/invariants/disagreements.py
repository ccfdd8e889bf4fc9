"""What must be true of disagreements that people settled: each way out was asked for, came to its end, and had its signatures."""

from datetime import timedelta

from escalations import policies
from ledger.invariants import Invariant

# What was put right by hand is a request only where a message itself waits for that. An old message goes with its requests.
ASKED_FOR = """
SELECT d.escalation_id, d.kind, d.decided_by, m.id AS message_id FROM public.escalations_decision d
JOIN public.escalations_escalation e ON e.id = d.escalation_id
JOIN public.outbox_message m ON m.id = (e.payload ->> 'message_id')::bigint
WHERE d.kind = ANY(%(exits)s) AND (d.kind <> 'compensate' OR e.object LIKE 'message:%%')
  AND 1 <> (SELECT count(*) FROM public.outbox_request r WHERE r.message_id = m.id AND r.escalation = e.id AND r.kind = d.kind
            AND r.requested_by = d.decided_by)
"""
# A replay waits for as long as a person answers instead of the agent.
DONE = """
SELECT e.id AS escalation_id, d.kind, e.state, e.decided_at FROM public.escalations_escalation e
JOIN public.escalations_decision d ON d.escalation_id = e.id
WHERE e.state IN ('decided', 'resumed') AND e.interrupt_id IS NULL AND e.decided_at <= now() - %(age)s
  AND NOT EXISTS (SELECT FROM public.agent_thread t WHERE t.thread = e.thread AND t.stepped_in_by IS NOT NULL)
"""
SIGNED = """
SELECT d.escalation_id, d.decided_by, d.needs, d.signed FROM public.escalations_decision d
WHERE d.kind = 'compensate' AND (coalesce(d.needs, 0) NOT IN (1, 2) OR d.signed < d.needs OR d.signed <> 1 + (
    SELECT count(DISTINCT a.by) FROM public.escalations_act a WHERE a.escalation_id = d.escalation_id AND a.kind = 'signed'
        AND a.detail ->> 'exit' = d.kind AND a.at <= d.decided_at AND a.by <> d.decided_by
        AND a.by IS DISTINCT FROM d.requested_by))
"""

INVARIANTS = (
    Invariant(
        name="escalations.exit_was_asked_for",
        guarantee=8,
        says="Whatever a reviewer decided to do with a message was asked of the outbox once, in that reviewer's name.",
        query=ASKED_FOR,
        values=lambda: {"exits": list(policies.MESSAGE_EXITS)},
    ),
    Invariant(
        name="escalations.exit_comes_to_its_end",
        guarantee=11,
        says="What a reviewer decided about a disagreement is done, and both sides are compared again, soon.",
        query=DONE,
        age=timedelta(minutes=30),
    ),
    Invariant(
        name="escalations.put_right_by_enough",
        guarantee=8,
        says="Whatever is marked as put right elsewhere was signed by as many people as it needs, none of whom asked for it.",
        query=SIGNED,
    ),
)
