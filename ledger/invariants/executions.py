"""Executions and their effects: the one exists if and only if the other does."""

from collections.abc import Mapping
from typing import Any

from ledger import sentences
from ledger.invariants.declaring import Invariant


def tools() -> Mapping[str, Any]:
    """Return the names of the installed tools that may write, of those that never do, and of those that depend on none."""
    known = sentences.tools().values()
    return {
        "writing": [tool.name for tool in known if tool.writes],
        "reading": [tool.name for tool in known if not tool.writes],
        "independent": [tool.name for tool in known if tool.independent],
    }


HAS_EFFECT = """
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, e.attempt_id FROM public.ledger_execution e
WHERE e.tool = ANY(%(writing)s) AND NOT EXISTS (
    SELECT FROM public.ledger_row_change c WHERE c.attempt_id = e.attempt_id AND c.call_index = e.call_index)
"""
READING = """
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, c.id AS change_id, c.table_name, c.operation
FROM public.ledger_execution e JOIN public.ledger_row_change c ON c.attempt_id = e.attempt_id AND c.call_index = e.call_index
WHERE e.tool = ANY(%(reading)s)
"""
# The owner's own changes (a migration, the demonstration's customers) have no call; those of settling name their message.
HAS_CAUSE = """
SELECT c.id AS change_id, c.login, c.table_name, c.operation, c.attempt_id, c.call_index FROM public.ledger_row_change c
WHERE c.message_id IS NULL AND c.login <> 'backstop_owner' AND NOT EXISTS (
    SELECT FROM public.ledger_execution e WHERE e.attempt_id = c.attempt_id AND e.call_index = c.call_index)
"""
SUBJECT = """
SELECT c.id AS change_id, c.table_name, c.subject AS changed, e.subject AS acted_for, e.thread, e.ai_message_id, e.call_index
FROM public.ledger_row_change c JOIN public.ledger_execution e ON e.attempt_id = c.attempt_id AND e.call_index = c.call_index
WHERE c.subject IS DISTINCT FROM e.subject
"""
# Rows of one savepoint have one transaction number. Rows that a dump brought back share theirs with other calls' rows, and
# are left out.
SAVEPOINT = """
WITH written AS (
    SELECT xmin::text AS xid, attempt_id, call_index FROM public.ledger_row_change GROUP BY 1, 2, 3
), own AS (
    SELECT xid FROM written GROUP BY xid HAVING count(*) = 1
), calls AS (
    SELECT xmin::text AS xid FROM public.ledger_execution GROUP BY 1 HAVING count(*) = 1
)
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, calls.xid AS transaction_of_call, w.xid AS transaction_of_change
FROM public.ledger_execution e
JOIN calls ON calls.xid = e.xmin::text
JOIN written w ON w.attempt_id = e.attempt_id AND w.call_index = e.call_index
JOIN own ON own.xid = w.xid
WHERE w.xid <> calls.xid
"""
COMMITTED = """
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, e.attempt_id, o.outcome FROM public.ledger_execution e
LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = e.attempt_id
LEFT JOIN public.ledger_attempt a ON a.id = e.attempt_id
WHERE ROW(o.outcome, o.thread, o.ai_message_id, o.generation)
    IS DISTINCT FROM ROW('committed', e.thread, e.ai_message_id, e.generation)
    OR (a.id IS NOT NULL AND a.performed_by IS DISTINCT FROM e.performed_by)
"""
# Reviewers drop calls, and of a partial step some fail: whatever else was asked for was executed.
WHOLE = """
WITH asked AS (
    SELECT o.attempt_id, (call ->> 'index')::integer AS call_index, call ->> 'tool' AS tool, call ->> 'id' AS tool_call_id
    FROM public.ledger_attempt_outcome o LEFT JOIN public.ledger_attempt a ON a.id = o.attempt_id
    LEFT JOIN LATERAL jsonb_array_elements(a.calls) AS call ON NOT coalesce((call ->> 'dropped')::boolean, false)
        AND NOT (o.partial AND o.told @> jsonb_build_array(jsonb_build_object('call_index', call -> 'index', 'status', 'failed')))
    WHERE o.outcome = 'committed'
)
SELECT coalesce(asked.attempt_id, e.attempt_id) AS attempt_id, coalesce(asked.call_index, e.call_index) AS call_index,
    asked.tool AS asked, e.tool AS executed
FROM asked FULL JOIN public.ledger_execution e ON e.attempt_id = asked.attempt_id AND e.call_index = asked.call_index
WHERE ROW(asked.tool, asked.tool_call_id) IS DISTINCT FROM ROW(e.tool, e.tool_call_id) OR asked.tool IS NULL
"""
PARTIAL = """
SELECT o.attempt_id, o.thread, o.ai_message_id, o.failed_call FROM public.ledger_attempt_outcome o
JOIN public.ledger_attempt a ON a.id = o.attempt_id
WHERE o.partial AND (o.failed_call IS NULL OR NOT o.told @> '[{"status": "failed"}]'
    OR NOT EXISTS (SELECT FROM public.ledger_execution e WHERE e.attempt_id = o.attempt_id)
    OR EXISTS (SELECT FROM jsonb_array_elements(a.calls) AS call WHERE NOT call ->> 'tool' = ANY(%(independent)s)))
"""
ONE_ATTEMPT = """
SELECT thread, ai_message_id, count(DISTINCT attempt_id) AS attempts, min(generation) AS lowest, max(generation) AS highest
FROM public.ledger_execution GROUP BY thread, ai_message_id
HAVING count(DISTINCT attempt_id) > 1 OR min(generation) <> max(generation)
"""
ONCE = """
SELECT thread, ai_message_id, call_index, count(*) AS executions FROM public.ledger_execution
GROUP BY thread, ai_message_id, call_index HAVING count(*) > 1
"""
NOT_ABORTED = """
SELECT DISTINCT e.thread, e.ai_message_id, e.generation, a.generation AS aborted, a.attempt_id
FROM public.ledger_batch_abort a JOIN public.ledger_execution e ON e.thread = a.thread AND e.ai_message_id = a.ai_message_id
WHERE a.generation >= e.generation
"""

INVARIANTS = (
    Invariant(
        name="ledger.execution_has_effect",
        guarantee=2,
        says="Every executed call of a tool that writes has changed at least one row of the books.",
        query=HAS_EFFECT,
        values=tools,
    ),
    Invariant(
        name="ledger.reading_changes_nothing",
        guarantee=2,
        says="A call of a tool that only reads has changed no row.",
        query=READING,
        values=tools,
    ),
    Invariant(
        name="ledger.change_has_cause",
        guarantee=2,
        says="Every changed row of the books belongs to an executed call, to a settled message, or to the owner's own work.",
        query=HAS_CAUSE,
    ),
    Invariant(
        name="ledger.change_stays_with_customer",
        guarantee=7,
        says="A call has changed rows of the customer only whom it acted for.",
        query=SUBJECT,
    ),
    Invariant(
        name="ledger.effect_in_its_savepoint",
        guarantee=2,
        says="The rows that a call has changed were written in the transaction and savepoint of its execution.",
        query=SAVEPOINT,
    ),
    Invariant(
        name="ledger.execution_was_committed",
        guarantee=2,
        says="Every executed call belongs to an attempt at the same step, by the same actor, whose outcome is committed.",
        query=COMMITTED,
    ),
    Invariant(
        name="ledger.batch_is_whole",
        guarantee=1,
        says="A committed attempt has executed each of its calls that was not dropped or told to have failed, and no other.",
        query=WHOLE,
    ),
    Invariant(
        name="ledger.partial_was_declared",
        guarantee=1,
        says="Only steps of tools that declare that they do not depend on each other were applied without a call that failed.",
        query=PARTIAL,
        values=tools,
    ),
    Invariant(
        name="ledger.step_ran_in_one_attempt",
        guarantee=1,
        says="All executed calls of a step come from one attempt and one generation.",
        query=ONE_ATTEMPT,
    ),
    Invariant(
        name="ledger.call_ran_once",
        guarantee=2,
        says="No call was executed twice.",
        query=ONCE,
    ),
    Invariant(
        name="ledger.no_execution_after_abort",
        guarantee=1,
        says="A step that the model was told had failed was not executed, unless a person had it tried again.",
        query=NOT_ABORTED,
    ),
)
