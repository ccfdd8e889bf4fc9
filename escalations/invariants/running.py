"""What must be true of what ran, or did not, because of a decision."""

from ledger.invariants import Invariant

# A held step runs in the same generation, and as the next one when a person has changed it. Without an approval it may run
# when the rule itself was changed meanwhile.
APPROVED = """
SELECT DISTINCT held.thread, held.ai_message_id, held.generation, held.attempt_id AS held, e.attempt_id AS ran
FROM public.ledger_attempt_outcome held
JOIN public.ledger_execution e ON e.thread = held.thread AND e.ai_message_id = held.ai_message_id
    AND e.generation = held.generation
WHERE held.outcome = 'held' AND NOT EXISTS (
    SELECT FROM public.escalations_decision d JOIN public.escalations_escalation q ON q.id = d.escalation_id
    JOIN public.escalations_revision r ON r.id = d.revision_id
    WHERE q.thread = held.thread AND q.ai_message_id = held.ai_message_id
        AND q.generation + CASE WHEN r.number > 0 THEN 1 ELSE 0 END = held.generation
        AND d.kind IN ('approve', 'take_over') AND d.decided_at < e.committed_at)
  AND NOT EXISTS (
    SELECT FROM public.agent_policy p WHERE p.set_at BETWEEN held.closed_at AND e.committed_at)
"""
# The attempts that were for a decision, with what ran of them.
RAN = """
WITH ran AS (
    SELECT d.id AS decision_id, d.escalation_id, d.preview_id, d.kind, r.calls, r.author, e.attempt_id, e.performed_by
    FROM public.escalations_decision d
    JOIN public.escalations_escalation q ON q.id = d.escalation_id
    JOIN public.escalations_revision r ON r.id = d.revision_id
    JOIN (SELECT DISTINCT thread, ai_message_id, generation, attempt_id, performed_by FROM public.ledger_execution
          WHERE (thread, ai_message_id) IN (SELECT q.thread, q.ai_message_id FROM public.escalations_escalation q
              JOIN public.escalations_decision d ON d.escalation_id = q.id WHERE d.kind IN ('approve', 'take_over'))) e
        ON e.thread = q.thread AND e.ai_message_id = q.ai_message_id
        AND e.generation = q.generation + CASE WHEN r.number > 0 THEN 1 ELSE 0 END
    WHERE d.kind IN ('approve', 'take_over') AND NOT EXISTS (
        SELECT FROM public.escalations_escalation again JOIN public.escalations_decision later ON later.escalation_id = again.id
        WHERE again.follows_id = q.id AND later.kind IN ('approve', 'take_over')))
"""
AS_APPROVED = f"""{RAN}
SELECT ran.decision_id, ran.escalation_id, ran.attempt_id, call.value ->> 'index' AS call_index
FROM ran JOIN public.ledger_attempt a ON a.id = ran.attempt_id
CROSS JOIN LATERAL (
    SELECT call AS value, count(*) OVER () AS calls FROM jsonb_array_elements(a.calls) AS call
    WHERE NOT coalesce((call ->> 'dropped')::boolean, false)) AS call
WHERE call.calls <> jsonb_array_length(ran.calls) OR NOT ran.calls @> jsonb_build_array(jsonb_build_object('index',
    call.value -> 'index', 'id', call.value -> 'id', 'tool', call.value -> 'tool', 'arguments', call.value -> 'arguments'))
"""  # noqa: S608 - joined from constants
# The preview was of this: the same rows of the same tables, call by call.
AS_SHOWN = f"""{RAN}
SELECT ran.decision_id, ran.escalation_id, ran.attempt_id, differs.* FROM ran
CROSS JOIN LATERAL (
    SELECT call_index, table_name AS "table", operation, shown.rows AS shown, done.rows AS done
    FROM (SELECT (change ->> 'call_index')::integer AS call_index, change ->> 'table_name' AS table_name,
            change ->> 'operation' AS operation, count(*) AS rows
          FROM public.escalations_preview p, jsonb_array_elements(p.changes) AS change WHERE p.id = ran.preview_id
          GROUP BY 1, 2, 3) AS shown
    FULL JOIN (SELECT c.call_index, c.table_name, c.operation, count(*) AS rows FROM public.ledger_row_change c
               WHERE c.attempt_id = ran.attempt_id GROUP BY 1, 2, 3) AS done USING (call_index, table_name, operation)
    WHERE shown.rows IS DISTINCT FROM done.rows) AS differs
"""  # noqa: S608 - joined from constants
BY_PERSON = f"""{RAN}
SELECT decision_id, escalation_id, kind, attempt_id, author, performed_by FROM ran
WHERE performed_by IS DISTINCT FROM CASE kind WHEN 'take_over' THEN author END
"""  # noqa: S608 - joined from constants
REJECTED = """
SELECT d.id AS decision_id, d.escalation_id, d.kind, e.call_index, e.tool FROM public.escalations_decision d
JOIN public.escalations_escalation q ON q.id = d.escalation_id
JOIN public.ledger_execution e ON e.thread = q.thread AND e.ai_message_id = q.ai_message_id AND e.generation = q.generation
WHERE q.kind = 'approval' AND d.kind IN ('reject', 'answer', 'withdraw', 'expire')
"""

INVARIANTS = (
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
        name="escalations.ran_as_shown",
        guarantee=8,
        says="What ran after an approval changed, call by call, as many rows of the same tables as its preview had shown.",
        query=AS_SHOWN,
    ),
    Invariant(
        name="escalations.taken_over_is_marked",
        guarantee=8,
        says="What a person took over ran as that person's work, and nothing else did.",
        query=BY_PERSON,
    ),
    Invariant(
        name="escalations.rejected_never_ran",
        guarantee=8,
        says="A held step did not run that a person said no to or answered instead, that was withdrawn, or that expired.",
        query=REJECTED,
    ),
)
