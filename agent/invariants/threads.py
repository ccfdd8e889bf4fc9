"""Threads and their leases: every one is finished, waits for a person, or runs."""

from datetime import timedelta

from ledger.invariants import Invariant

# A lease lasts half a minute; the sweeper looks every five seconds and spaces its drives by at most five minutes.
SOON = timedelta(minutes=15)

OF_CONVERSATION = """
SELECT a.id AS attempt_id, a.thread, a.subject, c.subject AS subject_of_conversation, a.on_behalf_of
FROM public.ledger_attempt a LEFT JOIN public.agent_conversation c ON c.thread = a.thread
WHERE a.subject IS DISTINCT FROM c.subject OR NOT EXISTS (
    SELECT FROM public.agent_staff_message m WHERE m.thread = a.thread AND m.author = a.on_behalf_of)
UNION ALL
SELECT e.attempt_id, e.thread, e.subject, c.subject, e.on_behalf_of
FROM public.ledger_execution e LEFT JOIN public.agent_conversation c ON c.thread = e.thread
WHERE e.subject IS DISTINCT FROM c.subject
"""
FENCE = """
SELECT a.id AS attempt_id, a.thread, a.fence, t.fence AS fence_of_thread FROM public.ledger_attempt a
LEFT JOIN public.agent_thread t ON t.thread = a.thread
WHERE a.fence > coalesce(t.fence, 0)
"""
# Each commit waits for the thread's lock, so their order in time is the order of the fences.
NO_ZOMBIE = """
SELECT thread, attempt_id, fence, fence_before FROM (
    SELECT ran.thread, ran.attempt_id, a.fence, lag(a.fence) OVER (PARTITION BY ran.thread ORDER BY ran.at) AS fence_before
    FROM (SELECT thread, attempt_id, max(committed_at) AS at FROM public.ledger_execution GROUP BY thread, attempt_id) ran
    JOIN public.ledger_attempt a ON a.id = ran.attempt_id) AS ordered
WHERE fence < fence_before
"""
LEASE = """
SELECT thread, state, lease_owner, leased_until FROM public.agent_thread
WHERE state <> 'running' AND (lease_owner IS NOT NULL OR leased_until IS NOT NULL)
"""
WAITING = """
SELECT t.thread, t.state, t.activity FROM public.agent_thread t
WHERE t.state = 'waiting' AND NOT EXISTS (
    SELECT FROM public.escalations_escalation e WHERE e.thread = t.thread AND e.interrupt_id IS NOT NULL
        AND (e.state IN ('open', 'claimed', 'decided') OR (e.state = 'expired' AND e.resumed_at IS NULL)))
"""
WAITED_FOR = """
SELECT e.id AS escalation_id, e.kind, e.state, e.thread, t.state AS thread_is FROM public.escalations_escalation e
LEFT JOIN public.agent_thread t ON t.thread = e.thread
WHERE e.interrupt_id IS NOT NULL AND e.state IN ('open', 'claimed', 'decided', 'resumed') AND coalesce(t.state, 'idle') = 'idle'
"""
STUCK = """
SELECT t.thread, t.activity, t.sweeps FROM public.agent_thread t
WHERE t.state = 'stuck' AND NOT EXISTS (
    SELECT FROM public.escalations_escalation e LEFT JOIN public.escalations_decision d ON d.escalation_id = e.id
    WHERE e.object = 'stuck:' || t.thread AND coalesce(d.kind, 'close') <> 'settle')
"""
RUNNING = """
SELECT thread, lease_owner, leased_until, sweeps, next_sweep_at FROM public.agent_thread
WHERE state = 'running' AND ((coalesce(leased_until, progressed_at) < now() - %(age)s AND next_sweep_at < now() - %(age)s)
    OR %(quiet)s)
"""
TAKEN = """
SELECT m.id AS message_id, m.thread, m.sent_at, coalesce(t.state, 'idle') AS thread_is FROM public.agent_staff_message m
LEFT JOIN public.agent_thread t ON t.thread = m.thread
WHERE m.state = 'queued' AND coalesce(t.state, 'idle') = 'idle' AND t.stepped_in_by IS NULL
    AND ((m.sent_at < now() - %(age)s AND coalesce(t.next_sweep_at, m.sent_at) < now() - %(age)s) OR %(quiet)s)
"""
SILENT = """
SELECT t.thread, t.stepped_in_at, 'message ' || m.id AS took, m.taken_at AS at FROM public.agent_thread t
JOIN public.agent_staff_message m ON m.thread = t.thread AND m.state = 'taken' AND m.taken_at > t.stepped_in_at
WHERE t.stepped_in_by IS NOT NULL
UNION ALL
SELECT t.thread, t.stepped_in_at, 'decision of E-' || e.id, e.resumed_at FROM public.agent_thread t
JOIN public.escalations_escalation e ON e.thread = t.thread AND e.resumed_at > t.stepped_in_at
WHERE t.stepped_in_by IS NOT NULL
"""
OPEN_STEP = """
SELECT a.thread, a.ai_message_id, a.id AS attempt_id, a.opened_at FROM public.ledger_attempt a
JOIN public.agent_thread t ON t.thread = a.thread
WHERE t.state = 'idle' AND NOT EXISTS (
    SELECT FROM public.ledger_attempt_outcome o WHERE o.thread = a.thread AND o.ai_message_id = a.ai_message_id
        AND o.outcome IN ('committed', 'rolled_back', 'refused', 'rejected'))
"""
OUTCOME_TOLD = """
SELECT m.id AS message_id, m.topic, m.state, m.thread FROM public.outbox_message m
WHERE m.thread IS NOT NULL AND m.state IN ('succeeded', 'rejected', 'cancelled') AND NOT EXISTS (
    SELECT FROM public.agent_notice n WHERE n.thread = m.thread AND n.object = 'message:' || m.id
        AND n.kind = split_part(m.topic, '.', 1) || '_' || m.state)
"""

INVARIANTS = (
    Invariant(
        name="agent.acts_for_its_customer",
        guarantee=7,
        says="Whatever a conversation tried or did was for its own customer, on behalf of somebody who wrote in it.",
        query=OF_CONVERSATION,
    ),
    Invariant(
        name="agent.fence_was_given_out",
        guarantee=9,
        says="No attempt carries a fence that its conversation never gave out.",
        query=FENCE,
    ),
    Invariant(
        name="agent.old_lease_changed_nothing",
        guarantee=9,
        says="Nothing was executed under an older lease after something was under a newer one.",
        query=NO_ZOMBIE,
    ),
    Invariant(
        name="agent.only_running_holds_lease",
        guarantee=9,
        says="Only a running conversation has a lease.",
        query=LEASE,
    ),
    Invariant(
        name="agent.waiting_has_question",
        guarantee=11,
        says="A conversation that waits for a person has put its question to one, and the answer was not used up.",
        query=WAITING,
    ),
    Invariant(
        name="agent.question_is_waited_for",
        guarantee=11,
        says="No conversation is finished while a question of it is open or its answer is still under way.",
        query=WAITED_FOR,
    ),
    Invariant(
        name="agent.stuck_reaches_a_person",
        guarantee=11,
        says="A conversation that could not go on was put before a person.",
        query=STUCK,
    ),
    Invariant(
        name="agent.running_is_driven",
        guarantee=11,
        says="No conversation that is unfinished is left without a worker for long.",
        query=RUNNING,
        age=SOON,
    ),
    Invariant(
        name="agent.message_is_taken",
        guarantee=11,
        says="No staff message waits for long in a conversation that does nothing.",
        query=TAKEN,
        age=SOON,
    ),
    Invariant(
        name="agent.silent_while_person_answers",
        guarantee=11,
        says="While a person answers instead of the agent, it takes up no message and no decision.",
        query=SILENT,
    ),
    Invariant(
        name="agent.finished_has_no_open_step",
        guarantee=11,
        says="In a finished conversation, every step that was tried was applied, or answered as not applied.",
        query=OPEN_STEP,
    ),
    Invariant(
        name="agent.outcome_is_told",
        guarantee=6,
        says="A conversation was told how each of its charges and refunds ended.",
        query=OUTCOME_TOLD,
    ),
)
