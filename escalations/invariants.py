"""What must be true of questions to people, of their decisions, and of what ran because of one."""

from datetime import timedelta

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
# Whoever asked is the requester, and everybody whose message the agent had taken by then.
FOUR_EYES = """
SELECT d.id AS decision_id, d.escalation_id, d.decided_by, e.requested_by FROM public.escalations_decision d
JOIN public.escalations_escalation e ON e.id = d.escalation_id
WHERE d.kind = 'approve' AND (d.decided_by IS NULL OR d.decided_by = e.requested_by
    OR d.requested_by IS DISTINCT FROM e.requested_by
    OR EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = e.thread AND m.author = d.decided_by
               AND m.state = 'taken' AND m.taken_at < d.decided_at))
"""
# Nobody keeps who had which role when: people change, so only what was decided just now can be judged.
BY_REVIEWER = """
SELECT d.id AS decision_id, d.escalation_id, d.kind, d.decided_by, u.username, u.is_active FROM public.escalations_decision d
LEFT JOIN public.auth_user u ON u.id = d.decided_by
WHERE d.kind NOT IN ('expire', 'settle') AND (u.id IS NULL OR (d.decided_at > now() - interval '1 hour' AND (NOT u.is_active
    OR NOT EXISTS (SELECT FROM public.auth_user_groups g JOIN public.auth_group r ON r.id = g.group_id
                   WHERE g.user_id = u.id AND r.name = 'reviewer'))))
"""
SIGNED = """
SELECT d.id AS decision_id, d.escalation_id, d.revision_id, d.decided_by, s.id AS signature_id
FROM public.escalations_decision d
LEFT JOIN public.escalations_signature s
    ON s.escalation_id = d.escalation_id AND s.revision_id = d.revision_id AND s.reviewer = d.decided_by
LEFT JOIN public.escalations_revision r ON r.id = d.revision_id AND r.escalation_id = d.escalation_id
WHERE d.kind = 'approve' AND (s.id IS NULL OR r.id IS NULL OR EXISTS (
    SELECT FROM public.escalations_revision newer
    WHERE newer.escalation_id = d.escalation_id AND newer.number > r.number AND newer.created_at < d.decided_at))
UNION ALL
SELECT NULL, s.escalation_id, s.revision_id, s.reviewer, s.id FROM public.escalations_signature s
WHERE NOT EXISTS (SELECT FROM public.escalations_decision d WHERE d.escalation_id = s.escalation_id AND d.kind = 'approve')
"""
WAIVED = """
SELECT d.id AS decision_id, d.escalation_id, d.waived, r.verdicts AS shown FROM public.escalations_decision d
LEFT JOIN public.escalations_revision r ON r.id = d.revision_id
WHERE d.waived <> CASE d.kind WHEN 'approve' THEN coalesce((
    SELECT jsonb_agg(jsonb_build_object('call_index', verdict -> 'call_index', 'rule', verdict -> 'rule',
                                        'measured', verdict -> 'measured') ORDER BY place)
    FROM jsonb_array_elements(r.verdicts) WITH ORDINALITY AS shown (verdict, place) WHERE verdict ->> 'action' = 'hold'), '[]')
    ELSE '[]' END
"""
PROPOSED = """
SELECT e.id AS escalation_id, e.kind, r.id AS revision_id FROM public.escalations_escalation e
LEFT JOIN public.escalations_revision r ON r.escalation_id = e.id AND r.number = 0
WHERE e.kind = 'approval' AND (r.id IS NULL OR r.calls IS DISTINCT FROM e.payload -> 'calls'
    OR r.verdicts IS DISTINCT FROM e.payload -> 'verdicts')
"""
# A held step runs in the same generation only. Without an approval it may run when the rule itself was changed meanwhile.
APPROVED = """
SELECT DISTINCT held.thread, held.ai_message_id, held.generation, held.attempt_id AS held, e.attempt_id AS ran
FROM public.ledger_attempt_outcome held
JOIN public.ledger_execution e ON e.thread = held.thread AND e.ai_message_id = held.ai_message_id
    AND e.generation = held.generation
WHERE held.outcome = 'held' AND NOT EXISTS (
    SELECT FROM public.escalations_decision d JOIN public.escalations_escalation q ON q.id = d.escalation_id
    WHERE q.thread = held.thread AND q.ai_message_id = held.ai_message_id AND q.generation = held.generation
        AND d.kind = 'approve' AND d.decided_at < e.committed_at)
  AND NOT EXISTS (
    SELECT FROM public.agent_policy p WHERE p.set_at BETWEEN held.closed_at AND e.committed_at)
"""
AS_APPROVED = """
SELECT d.id AS decision_id, d.escalation_id, e.attempt_id, call ->> 'index' AS call_index
FROM public.escalations_decision d
JOIN public.escalations_escalation q ON q.id = d.escalation_id
JOIN public.escalations_revision r ON r.id = d.revision_id
JOIN (SELECT DISTINCT thread, ai_message_id, generation, attempt_id FROM public.ledger_execution WHERE (thread, ai_message_id) IN
          (SELECT thread, ai_message_id FROM public.escalations_escalation WHERE kind = 'approval')) e
    ON e.thread = q.thread AND e.ai_message_id = q.ai_message_id AND e.generation = q.generation
JOIN public.ledger_attempt a ON a.id = e.attempt_id
CROSS JOIN jsonb_array_elements(a.calls) AS call
WHERE d.kind = 'approve' AND (jsonb_array_length(a.calls) <> jsonb_array_length(r.calls)
    OR NOT r.calls @> jsonb_build_array(jsonb_build_object(
        'index', call -> 'index', 'id', call -> 'id', 'tool', call -> 'tool', 'arguments', call -> 'arguments')))
"""
REJECTED = """
SELECT d.id AS decision_id, d.escalation_id, d.kind, e.call_index, e.tool FROM public.escalations_decision d
JOIN public.escalations_escalation q ON q.id = d.escalation_id
JOIN public.ledger_execution e ON e.thread = q.thread AND e.ai_message_id = q.ai_message_id AND e.generation = q.generation
WHERE q.kind = 'approval' AND d.kind IN ('reject', 'expire')
"""
# A thread that works has its lease; whoever took the decision says so before the next step.
TAKEN_UP = """
SELECT e.id AS escalation_id, e.kind, e.thread, e.decided_at FROM public.escalations_escalation e
JOIN public.agent_thread t ON t.thread = e.thread
WHERE e.state = 'decided' AND e.decided_at <= now() - %(age)s AND t.state <> 'stuck'
    AND (t.leased_until IS NULL OR t.leased_until < now() - %(age)s OR %(quiet)s)
"""
PERSON = """
SELECT m.id AS message_id, m.topic, m.state, m.refusal, m.last_error FROM public.outbox_message m
WHERE (m.state = 'dead' OR m.compensation_needed OR (m.state = 'rejected' AND m.topic = ANY(%(topics)s)))
  AND NOT EXISTS (SELECT FROM public.escalations_escalation e WHERE e.object = 'message:' || m.id)
"""
CLOSED = """
SELECT id AS escalation_id, kind, state, interrupt_id, resumed_at, closed_at FROM public.escalations_escalation
WHERE (state IN ('done', 'expired')) <> (closed_at IS NOT NULL) OR (state = 'resumed' AND resumed_at IS NULL)
    OR (state IN ('decided', 'resumed') AND interrupt_id IS NULL)
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
    ),
    Invariant(
        name="escalations.four_eyes",
        guarantee=8,
        says="Nobody approved what they, or a message of theirs in that conversation, had asked for.",
        query=FOUR_EYES,
    ),
    Invariant(
        name="escalations.decided_by_reviewer",
        guarantee=8,
        says="Decisions were taken by people who exist; those of the last hour by people who are reviewers.",
        query=BY_REVIEWER,
    ),
    Invariant(
        name="escalations.approval_is_signed",
        guarantee=8,
        says="An approval is signed by whoever decided it, under the newest version of the proposal; nothing else is signed.",
        query=SIGNED,
    ),
    Invariant(
        name="escalations.waived_what_was_shown",
        guarantee=8,
        says="An approval waives exactly the limits that were shown, at the amounts that were shown; nothing else waives any.",
        query=WAIVED,
    ),
    Invariant(
        name="escalations.proposal_is_kept",
        guarantee=8,
        says="Every question for approval keeps the calls and the reasons that it was asked with.",
        query=PROPOSED,
    ),
    Invariant(
        name="escalations.held_ran_approved",
        guarantee=8,
        says="A step that was held ran only after somebody approved it, or after the limit itself was changed.",
        query=APPROVED,
    ),
    Invariant(
        name="escalations.ran_as_approved",
        guarantee=8,
        says="What ran after an approval is, call by call, what was approved.",
        query=AS_APPROVED,
    ),
    Invariant(
        name="escalations.rejected_never_ran",
        guarantee=8,
        says="A step that a person said no to, or that nobody decided in time, did not run.",
        query=REJECTED,
    ),
    Invariant(
        name="escalations.decision_is_taken_up",
        guarantee=11,
        says="A decision reaches the conversation that waits for it soon.",
        query=TAKEN_UP,
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
