"""How a conversation must have ended, whatever was killed on the way: one sentence for each thing that is not so."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row

from tests.matrix.talks import TOOLS, Desk, Talk

# A thread that is neither finished nor waiting, a message that is not final, an event that was not processed.
MOVING = """
SELECT 'thread ' || thread FROM public.agent_thread WHERE state NOT IN ('idle', 'waiting', 'stuck')
UNION ALL SELECT 'queued message of ' || thread FROM public.agent_staff_message WHERE state = 'queued'
UNION ALL SELECT 'decided escalation ' || id FROM public.escalations_escalation
    WHERE state IN ('decided', 'resumed') AND thread = ANY(%(threads)s)
UNION ALL SELECT 'outbox message ' || id FROM public.outbox_message
    WHERE state NOT IN ('succeeded', 'rejected', 'dead', 'cancelled') AND thread = ANY(%(threads)s)
UNION ALL SELECT 'request ' || id FROM public.outbox_request WHERE carried_out_at IS NULL
UNION ALL SELECT 'webhook event ' || event_id FROM public.outbox_webhook_event WHERE processed_at IS NULL
"""
EXECUTED = "SELECT tool, call_index FROM public.ledger_execution WHERE thread = %s ORDER BY ai_message_id, call_index"
BATCHES = "SELECT count(DISTINCT ai_message_id) FROM public.ledger_execution WHERE thread = %s"
INVOICES = """
SELECT i.status, i.amount_due_minor, (SELECT count(*) FROM public.billing_payment p WHERE p.invoice_id = i.id),
       (SELECT coalesce(sum(p.amount_minor), 0) FROM public.billing_payment p WHERE p.invoice_id = i.id)
FROM public.billing_invoice i WHERE i.customer_id = %s AND i.billing_period = %s
"""
SENT = "SELECT state, uid::text FROM public.outbox_message WHERE thread = %s"
WRITTEN = "SELECT message_id FROM public.agent_transcript_entry WHERE thread = %s ORDER BY position"
ASKED = """
SELECT e.kind, e.state, (SELECT count(*) FROM public.escalations_decision d WHERE d.escalation_id = e.id)
FROM public.escalations_escalation e WHERE e.thread = %s
"""


def moving(desk: Desk, talks: list[Talk]) -> list[str]:
    """Return what has not come to its end."""
    with desk.books.cursor() as cursor:
        return [row[0] for row in cursor.execute(MOVING, {"threads": [talk.thread for talk in talks]}).fetchall()]


def complaints(desk: Desk, talk: Talk, *, movements: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with a conversation that has ended."""
    return [*_books(desk, talk), *_money(desk, talk, movements), *_messages(desk, talk), *_state(desk, talk)]


def _books(desk: Desk, talk: Talk) -> Iterator[str]:
    executed = [tuple(row) for row in desk.rows(EXECUTED, talk.thread)]
    if executed != [(tool, index) for index, tool in enumerate(TOOLS)]:
        yield f"applied: {executed}"
    if desk.rows(BATCHES, talk.thread) != [(1,)]:
        yield "more batches than one"
    invoices = [tuple(row) for row in desk.rows(INVOICES, talk.customer, talk.month)]
    if invoices != [("paid", talk.amount, 1, talk.amount)]:
        yield f"invoices: {invoices}, not one of {talk.amount} that is paid"


def _money(desk: Desk, talk: Talk, movements: list[dict[str, Any]]) -> Iterator[str]:
    sent = desk.rows(SENT, talk.thread)
    if [state for state, _ in sent] != ["succeeded"]:
        yield f"outbox: {sent}"
    uids = {uid for _, uid in sent}
    moved = [item["amount"] for item in movements if item["metadata"].get("backstop_uid") in uids]
    if moved != [talk.amount]:
        yield f"the provider moved {moved}, not {talk.amount}"


def _messages(desk: Desk, talk: Talk) -> Iterator[str]:
    found = newest(desk.books, talk)
    calls = [call["id"] for message in found if isinstance(message, AIMessage) for call in message.tool_calls]
    answers = Counter(message.tool_call_id for message in found if isinstance(message, ToolMessage))
    if answers != Counter(calls) or len(set(calls)) != len(TOOLS):
        yield f"{len(calls)} calls and {answers.total()} answers"
    if any(isinstance(message, ToolMessage) and message.status != "success" for message in found):
        yield "an answer says that a call was not applied"
    if [message.id for message in found if message.type == "human"] != [f"staff:{talk.message}"]:
        yield "the staff message is not in the thread once"
    if not (found and isinstance(found[-1], AIMessage) and not found[-1].tool_calls and found[-1].text):
        yield "there is no final answer"
    if [row[0] for row in desk.rows(WRITTEN, talk.thread)] != [str(message.id) for message in found]:
        yield "the transcript is not what the checkpoint holds"


def newest(books: "psycopg.Connection[Any]", talk: Talk) -> list[BaseMessage]:
    """Return the messages of a thread's newest checkpoint."""
    books.row_factory = dict_row
    try:
        found = PostgresSaver(books).get_tuple({"configurable": {"thread_id": str(talk.thread), "checkpoint_ns": ""}})
    finally:
        books.row_factory = psycopg.rows.tuple_row
    messages: list[BaseMessage] = found.checkpoint["channel_values"].get("messages", []) if found else []
    return messages


def _state(desk: Desk, talk: Talk) -> Iterator[str]:
    state = desk.rows("SELECT state FROM public.agent_thread WHERE thread = %s", talk.thread)
    if state != [("idle",)]:
        yield f"the thread is {state}"
    asked = [tuple(row) for row in desk.rows(ASKED, talk.thread)]
    # what others did with the customer's credit meanwhile is a reason to ask again, and nothing else is
    if set(asked) != ({("approval", "done", 1)} if talk.way in ("held", "approved") else set()):
        yield f"escalations: {asked}"


def takeovers(desk: Desk, talk: Talk) -> int:
    """Return how often a run of the conversation was taken over: its leases beyond those it needs."""
    ((fence,),) = desk.rows("SELECT fence FROM public.agent_thread WHERE thread = %s", talk.thread)
    return int(fence) - (2 if talk.way in ("held", "approved") else 1)
