"""What must be true of questions to people: one at a time, each with its one end, and none that nobody sees."""

from datetime import timedelta

from escalations import policies
from ledger.invariants import Invariant
from outbox import handlers

ONE_OPEN = """
SELECT object, count(*) AS open, min(id) AS first, max(id) AS last FROM public.escalations_escalation
WHERE state IN ('open', 'claimed') GROUP BY object HAVING count(*) > 1
"""
DECIDED = """
SELECT e.id AS escalation_id, e.kind, e.state, d.kind AS decision FROM public.escalations_escalation e
LEFT JOIN public.escalations_decision d ON d.escalation_id = e.id
WHERE CASE WHEN e.state IN ('open', 'claimed') THEN d.id IS NOT NULL OR e.decided_at IS NOT NULL
           WHEN e.state = 'expired' THEN d.kind IS DISTINCT FROM 'expire' OR e.decided_at IS NULL
           ELSE d.id IS NULL OR e.decided_at IS NULL END
"""
ONE_DECISION = """
SELECT escalation_id, count(*) AS decisions FROM public.escalations_decision GROUP BY escalation_id HAVING count(*) > 1
"""
# Nobody keeps who had which role when: people change, so only what was decided just now can be judged.
BY_REVIEWER = """
SELECT d.id AS decision_id, d.escalation_id, d.kind, d.decided_by, u.username, u.is_active FROM public.escalations_decision d
LEFT JOIN public.auth_user u ON u.id = d.decided_by
WHERE d.kind NOT IN ('expire', 'settle') AND (u.id IS NULL OR (d.kind <> 'withdraw' AND d.decided_at > now() - interval '1 hour'
    AND (NOT u.is_active OR NOT EXISTS (
        SELECT FROM public.auth_user_groups g JOIN public.auth_group r ON r.id = g.group_id
        WHERE g.user_id = u.id AND r.name = 'reviewer'))))
"""
WITHDRAWN = """
SELECT d.id AS decision_id, d.escalation_id, d.decided_by, e.requested_by FROM public.escalations_decision d
JOIN public.escalations_escalation e ON e.id = d.escalation_id
WHERE d.kind = 'withdraw' AND d.decided_by IS DISTINCT FROM e.requested_by AND NOT EXISTS (
    SELECT FROM public.agent_staff_message m WHERE m.thread = e.thread AND m.author = d.decided_by AND m.state = 'taken')
"""
EXPIRED = """
SELECT d.id AS decision_id, d.escalation_id, d.decided_at, e.expires_at FROM public.escalations_decision d
JOIN public.escalations_escalation e ON e.id = d.escalation_id
WHERE d.kind = 'expire' AND (e.expires_at IS NULL OR d.decided_at < e.expires_at)
"""
# A thread that works has its lease; whoever took the decision says so before the next step.
TAKEN_UP = """
SELECT e.id AS escalation_id, e.kind, e.thread, e.decided_at FROM public.escalations_escalation e
JOIN public.agent_thread t ON t.thread = e.thread
WHERE e.state = 'decided' AND e.interrupt_id IS NOT NULL AND e.decided_at <= now() - %(age)s AND t.state <> 'stuck'
    AND (t.leased_until IS NULL OR t.leased_until < now() - %(age)s OR %(quiet)s)
"""
# The worker that makes it takes the conversation's lease.
PREVIEWED = """
SELECT p.id AS preview_id, r.escalation_id, p.requested_at FROM public.escalations_preview p
JOIN public.escalations_revision r ON r.id = p.revision_id
JOIN public.escalations_escalation e ON e.id = r.escalation_id AND e.state IN ('open', 'claimed')
JOIN public.agent_thread t ON t.thread = e.thread
WHERE p.made_at IS NULL AND p.requested_at <= now() - %(age)s AND t.state <> 'stuck'
    AND (t.leased_until IS NULL OR t.leased_until < now() - %(age)s OR %(quiet)s)
"""
PERSON = """
SELECT m.id AS message_id, m.topic, m.state, m.refusal, m.last_error FROM public.outbox_message m
WHERE (m.state = 'dead' OR m.compensation_needed OR (m.state = 'rejected' AND m.topic = ANY(%(topics)s)))
  AND NOT EXISTS (SELECT FROM public.escalations_escalation e WHERE e.object = 'message:' || m.id)
"""
# What no conversation waits for ends with its decision, unless that is a way to settle a disagreement, which takes a moment.
CLOSED = """
SELECT id AS escalation_id, kind, state, interrupt_id, resumed_at, closed_at FROM public.escalations_escalation e
WHERE (state IN ('done', 'expired')) <> (closed_at IS NOT NULL) OR (state = 'resumed' AND resumed_at IS NULL)
    OR (state IN ('decided', 'resumed') AND interrupt_id IS NULL AND NOT EXISTS (
        SELECT FROM public.escalations_decision d WHERE d.escalation_id = e.id AND d.kind = ANY(%(exits)s)))
"""

INVARIANTS = (
    Invariant(
        name="escalations.one_open_question",
        guarantee=8,
        says="At most one question about the same thing is open.",
        query=ONE_OPEN,
    ),
    Invariant(
        name="escalations.closed_by_decision",
        guarantee=8,
        says="A question is open as long as it has no decision, and only then.",
        query=DECIDED,
    ),
    Invariant(
        name="escalations.one_decision",
        guarantee=8,
        says="A question has at most one decision.",
        query=ONE_DECISION,
    ),
    Invariant(
        name="escalations.ends_as_it_says",
        guarantee=11,
        says="A question that is done or expired says when it was closed, one that a conversation took says when.",
        query=CLOSED,
        values=lambda: {"exits": list(policies.EXITS)},
    ),
    Invariant(
        name="escalations.decided_by_reviewer",
        guarantee=8,
        says="Decisions were taken by people who exist; reviewers' decisions of the last hour by people who are reviewers.",
        query=BY_REVIEWER,
    ),
    Invariant(
        name="escalations.withdrawn_by_who_asked",
        guarantee=8,
        says="A request was withdrawn by somebody who had asked for it.",
        query=WITHDRAWN,
    ),
    Invariant(
        name="escalations.expired_in_time",
        guarantee=8,
        says="The system decided for want of a person only when the time for it was over.",
        query=EXPIRED,
    ),
    Invariant(
        name="escalations.decision_is_taken_up",
        guarantee=11,
        says="A decision reaches the conversation that waits for it soon.",
        query=TAKEN_UP,
        age=timedelta(minutes=10),
    ),
    Invariant(
        name="escalations.preview_comes_soon",
        guarantee=11,
        says="Whoever waits for a preview of what is undecided gets it soon.",
        query=PREVIEWED,
        age=timedelta(minutes=10),
    ),
    Invariant(
        name="escalations.trouble_reaches_a_person",
        guarantee=5,
        says="Every payment that was refused, and every message whose outcome nobody knows, was put before a person.",
        query=PERSON,
        values=lambda: {"topics": handlers.refusals_ask_person()},
    ),
)
