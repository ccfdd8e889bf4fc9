"""Attempts and their evidence: what was tried is kept, unchanged, and the model was told exactly what happened."""

from ledger.invariants.declaring import Invariant
from ledger.invariants.executions import tools

SAME = """
SELECT o.attempt_id, o.outcome, a.thread AS asked_in, o.thread AS ended_in FROM public.ledger_attempt_outcome o
JOIN public.ledger_attempt a ON a.id = o.attempt_id
WHERE ROW(a.thread, a.ai_message_id, a.generation) IS DISTINCT FROM ROW(o.thread, o.ai_message_id, o.generation)
    OR (o.outcome <> 'committed' AND o.calls IS DISTINCT FROM a.calls) OR o.closed_at < a.opened_at
"""
# The calls before the failing one had changed something, unless they only read: each of them must be in the evidence.
UNDONE = """
SELECT o.attempt_id, o.failed_call, call ->> 'tool' AS tool, (call ->> 'index')::integer AS call_index
FROM public.ledger_attempt_outcome o CROSS JOIN jsonb_array_elements(o.calls) AS call
WHERE o.outcome = 'rolled_back' AND (call ->> 'index')::integer < o.failed_call AND call ->> 'tool' = ANY(%(writing)s)
  AND NOT coalesce((call ->> 'dropped')::boolean, false)
  AND NOT o.told @> jsonb_build_array(jsonb_build_object('call_index', call -> 'index', 'status', 'failed'))
  AND NOT coalesce(o.undone, '[]') @> jsonb_build_array(jsonb_build_object('call_index', call -> 'index'))
"""
NAMED = """
SELECT attempt_id, outcome, failed_call, detail FROM public.ledger_attempt_outcome
WHERE CASE outcome
    WHEN 'rolled_back' THEN failed_call IS NULL OR detail IS NULL OR calls -> failed_call IS NULL
    WHEN 'refused' THEN coalesce(jsonb_array_length(problems), 0) = 0
    WHEN 'held' THEN coalesce(jsonb_array_length(problems), 0) = 0
    WHEN 'drifted' THEN undone IS NULL AND detail IS NULL
    WHEN 'infrastructure' THEN detail IS NULL
    WHEN 'bug' THEN detail IS NULL
    ELSE false END
"""
TOLD = """
SELECT coalesce(o.attempt_id, b.attempt_id) AS attempt_id, o.outcome, b.generation AS aborted
FROM (SELECT * FROM public.ledger_attempt_outcome WHERE outcome IN ('rolled_back', 'refused', 'rejected')) o
FULL JOIN public.ledger_batch_abort b ON b.attempt_id = o.attempt_id
WHERE ROW(o.thread, o.ai_message_id, o.generation, o.told) IS DISTINCT FROM ROW(b.thread, b.ai_message_id, b.generation, b.told)
"""
ONE_ANSWER = """
SELECT o.attempt_id, o.outcome, jsonb_array_length(o.calls) AS calls, coalesce(jsonb_array_length(o.told), 0) AS answers
FROM public.ledger_attempt_outcome o
WHERE o.outcome IN ('rolled_back', 'refused', 'rejected') AND ROW(
    (SELECT array_agg((call ->> 'index')::integer ORDER BY (call ->> 'index')::integer) FROM jsonb_array_elements(o.calls) call)
) IS DISTINCT FROM ROW(
    (SELECT array_agg((answer ->> 'call_index')::integer ORDER BY (answer ->> 'call_index')::integer)
     FROM jsonb_array_elements(coalesce(o.told, '[]')) answer)
)
UNION ALL
SELECT o.attempt_id, o.outcome, jsonb_array_length(a.calls), coalesce(jsonb_array_length(o.told), 0)
FROM public.ledger_attempt_outcome o JOIN public.ledger_attempt a ON a.id = o.attempt_id
WHERE o.outcome = 'committed' AND (o.told IS NOT NULL OR a.calls @> '[{"dropped": true}]') AND ROW(
    (SELECT array_agg((call ->> 'index')::integer ORDER BY (call ->> 'index')::integer) FROM jsonb_array_elements(a.calls) call)
) IS DISTINCT FROM ROW(
    (SELECT array_agg(at ORDER BY at) FROM (
        SELECT (answer ->> 'call_index')::integer AS at FROM jsonb_array_elements(coalesce(o.told, '[]')) answer
        UNION ALL
        SELECT call_index FROM public.ledger_execution e WHERE e.attempt_id = o.attempt_id AND NOT coalesce(o.told, '[]')
            @> jsonb_build_array(jsonb_build_object('call_index', call_index, 'status', 'applied'))
    ) AS answers)
)
"""
UNTOLD = """
SELECT o.attempt_id, o.outcome, c.id AS change_id, c.table_name, c.operation FROM public.ledger_attempt_outcome o
JOIN public.ledger_row_change c ON c.attempt_id = o.attempt_id
WHERE o.outcome <> 'committed'
"""

INVARIANTS = (
    Invariant(
        name="ledger.outcome_is_of_its_attempt",
        guarantee=6,
        says="An outcome names the step, the generation and the calls of its own attempt, and came after it.",
        query=SAME,
    ),
    Invariant(
        name="ledger.undone_is_kept",
        guarantee=6,
        says="Whatever the calls before a failing one had changed is kept as evidence.",
        query=UNDONE,
        values=tools,
    ),
    Invariant(
        name="ledger.failure_is_named",
        guarantee=6,
        says="An attempt that did not commit says why: the failing call and error, the problems, or what held it.",
        query=NAMED,
    ),
    Invariant(
        name="ledger.told_is_recorded",
        guarantee=6,
        says="Every failure that the model was told of is recorded as an abort with the same answers, and every abort was told.",
        query=TOLD,
    ),
    Invariant(
        name="ledger.one_answer_a_call",
        guarantee=3,
        says="A step that was not applied, or not as the model sent it, has exactly one recorded answer for each of its calls.",
        query=ONE_ANSWER,
    ),
    Invariant(
        name="ledger.undone_left_nothing",
        guarantee=1,
        says="An attempt that did not commit has left no changed row behind.",
        query=UNTOLD,
    ),
)
