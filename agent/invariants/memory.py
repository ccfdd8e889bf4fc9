"""What a thread remembers against what the ledger knows: every call has one answer, and the answer is true."""

from collections.abc import Iterator
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from agent import transcript
from ledger.invariants import Invariant

MOST = 1_000  # threads whose checkpoints are read; the rest was compared when it was new

# Between two steps of a running thread, an answer may be missing; in a finished one it may not.
ANSWERED = """
WITH idle AS MATERIALIZED (
    SELECT e.* FROM public.agent_transcript_entry e JOIN public.agent_thread t ON t.thread = e.thread AND t.state = 'idle'
), asked AS (
    SELECT thread, message_id || ':' || (call ->> 'index') AS answer_id, call ->> 'id' AS call_id, call ->> 'tool' AS tool
    FROM idle CROSS JOIN jsonb_array_elements(tool_calls) AS call WHERE role = 'ai'
), answered AS (
    SELECT thread, message_id AS answer_id, tool_call_id AS call_id FROM idle WHERE role = 'tool'
)
SELECT thread, answer_id, asked.call_id AS asked, answered.call_id AS answered, asked.tool
FROM asked FULL JOIN answered USING (thread, answer_id)
WHERE asked.call_id IS DISTINCT FROM answered.call_id
"""
ONE_ID = """
SELECT thread, call ->> 'id' AS call_id, count(*) AS calls FROM public.agent_transcript_entry
CROSS JOIN jsonb_array_elements(tool_calls) AS call WHERE role = 'ai' GROUP BY thread, call ->> 'id' HAVING count(*) > 1
UNION ALL
SELECT thread, tool_call_id, count(*) FROM public.agent_transcript_entry
WHERE role = 'tool' GROUP BY thread, tool_call_id HAVING count(*) > 1
"""
TRUE = """
SELECT t.thread, t.message_id, t.status, t.text FROM public.agent_transcript_entry t
WHERE t.role = 'tool' AND t.status = 'success' AND NOT EXISTS (
    SELECT FROM public.ledger_execution e
    WHERE e.thread = t.thread AND e.ai_message_id || ':' || e.call_index = t.message_id AND e.tool_call_id = t.tool_call_id)
"""
SEEN = """
SELECT e.thread, e.ai_message_id, e.call_index, e.tool, a.status FROM public.ledger_execution e
JOIN public.agent_thread t ON t.thread = e.thread AND t.state = 'idle'
LEFT JOIN public.agent_transcript_entry a ON a.thread = e.thread AND a.message_id = e.ai_message_id || ':' || e.call_index
    AND a.role = 'tool'
WHERE a.status IS DISTINCT FROM 'success' OR a.tool_call_id IS DISTINCT FROM e.tool_call_id
"""
RECORDED = """
SELECT a.thread, a.message_id, a.text, answer ->> 'text' AS recorded FROM public.agent_transcript_entry a
LEFT JOIN LATERAL (
    SELECT told FROM (
        SELECT o.told, true AS committed, o.generation FROM public.ledger_attempt_outcome o
        WHERE o.thread = a.thread AND o.ai_message_id = regexp_replace(a.message_id, ':[0-9]+$', '') AND o.outcome = 'committed'
        UNION ALL
        SELECT b.told, false, b.generation FROM public.ledger_batch_abort b
        WHERE b.thread = a.thread AND b.ai_message_id = regexp_replace(a.message_id, ':[0-9]+$', '')
    ) AS given ORDER BY committed DESC, generation DESC LIMIT 1) AS newest ON true
LEFT JOIN LATERAL jsonb_array_elements(newest.told) AS answer
    ON answer ->> 'call_index' = substring(a.message_id FROM ':([0-9]+)$')
JOIN public.agent_thread t ON t.thread = a.thread AND t.state = 'idle'
WHERE a.role = 'tool' AND a.status = 'error' AND answer ->> 'text' IS DISTINCT FROM a.text
"""
READ = """
SELECT m.id AS message_id, m.thread, m.taken_at, t.state FROM public.agent_staff_message m
JOIN public.agent_thread t ON t.thread = m.thread AND t.state IN ('idle', 'waiting')
WHERE m.state = 'taken' AND NOT EXISTS (
    SELECT FROM public.agent_transcript_entry e WHERE e.thread = m.thread AND e.message_id = 'staff:' || m.id AND e.text = m.text)
"""
KNOWN = """
SELECT t.thread, 'thread' AS what FROM public.agent_thread t
WHERE NOT EXISTS (SELECT FROM public.agent_conversation c WHERE c.thread = t.thread)
UNION ALL
SELECT k.thread, 'checkpoint' FROM (SELECT DISTINCT thread_id::uuid AS thread FROM public.checkpoints) k
WHERE NOT EXISTS (SELECT FROM public.agent_conversation c WHERE c.thread = k.thread)
"""
NEWEST = "SELECT thread FROM public.agent_thread ORDER BY progressed_at DESC LIMIT %s"
ROWS = """
SELECT message_id, position, role, text, tool_calls, tool_call_id, status FROM public.agent_transcript_entry WHERE thread = %s
"""


def differing(conn: Connection[Any], quiet: bool) -> Iterator[dict[str, Any]]:
    """Yield what the newest checkpoint of a thread holds otherwise than its transcript, of the threads that moved last."""
    from langgraph.checkpoint.postgres import PostgresSaver  # only a check needs it here, and not every process has the time

    saver = PostgresSaver(conn)
    for (thread,) in conn.execute(NEWEST, (MOST,)).fetchall():
        found = saver.get_tuple({"configurable": {"thread_id": str(thread)}})
        messages = found.checkpoint["channel_values"].get("messages", []) if found else []
        remembered = {row["message_id"]: row for row in transcript.changed(messages, known={}, thread=thread)}
        with conn.cursor(row_factory=dict_row) as cursor:
            written = {row["message_id"]: row for row in cursor.execute(ROWS, (thread,))}
        for message_id in remembered.keys() | written.keys():
            if differences := _differences(remembered.get(message_id), written.get(message_id)):
                yield {"thread": thread, "message_id": message_id, "differs": differences}


def _differences(remembered: dict[str, Any] | None, written: dict[str, Any] | None) -> list[str]:
    if remembered is None or written is None:
        return ["not in the checkpoint" if remembered is None else "not in the transcript"]
    plain = remembered | {"tool_calls": remembered["tool_calls"].obj}
    return [name for name in written if written[name] != plain[name]]


INVARIANTS = (
    Invariant(
        name="agent.call_has_one_answer",
        guarantee=3,
        says="In a finished conversation every call of the model has exactly one answer, and every answer its call.",
        query=ANSWERED,
    ),
    Invariant(
        name="agent.call_id_is_used_once",
        guarantee=3,
        says="No conversation has two calls, or two answers, under one id.",
        query=ONE_ID,
    ),
    Invariant(
        name="agent.success_was_executed",
        guarantee=2,
        says="A call that the model was told was applied was executed.",
        query=TRUE,
    ),
    Invariant(
        name="agent.execution_was_told",
        guarantee=2,
        says="In a finished conversation the model was told of every executed call that it was applied.",
        query=SEEN,
    ),
    Invariant(
        name="agent.failure_as_recorded",
        guarantee=6,
        says="In a finished conversation, what the model reads about a call that was not applied is what was recorded.",
        query=RECORDED,
    ),
    Invariant(
        name="agent.message_was_read",
        guarantee=11,
        says="Every staff message that was taken is in its conversation, word for word.",
        query=READ,
    ),
    Invariant(
        name="agent.thread_has_conversation",
        guarantee=7,
        says="Every thread and every checkpoint belongs to a conversation.",
        query=KNOWN,
    ),
    Invariant(
        name="agent.transcript_is_the_memory",
        guarantee=3,
        says=f"What pages show of a conversation is what its newest checkpoint holds (of the {MOST:,} that moved last).",
        look=differing,
    ),
)
