"""The conversation as rows: a projection of the thread's messages, written in the transaction of their checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from psycopg import Cursor
from psycopg.types.json import Jsonb

from agent import plain

Row = dict[str, Any]
Known = Mapping[str, Any]

ROLES = {"human": "human", "ai": "ai", "tool": "tool", "system": "system"}

# A message that is there already was answered anew: only its words change, never its place or its time.
WRITE = """
INSERT INTO public.agent_transcript_entry
    (thread, message_id, position, role, text, tool_calls, tool_call_id, status, model, prompt_version, usage)
VALUES (%(thread)s, %(message_id)s, %(position)s, %(role)s, %(text)s, %(tool_calls)s, %(tool_call_id)s, %(status)s, %(model)s,
    %(prompt_version)s, %(usage)s)
ON CONFLICT (thread, message_id) DO UPDATE SET text = excluded.text, status = excluded.status, tool_calls = excluded.tool_calls
"""


def write(cursor: Cursor[Any], rows: Sequence[Row]) -> None:
    """Write the rows in the caller's transaction; nothing is fetched."""
    for row in rows:
        cursor.execute(WRITE, row)


def changed(messages: Sequence[BaseMessage], *, known: Known, thread: UUID) -> list[Row]:
    """Return a row for each message that `known` (see `seen`) does not hold in this form."""
    return list(_changed(messages, known=known, thread=thread))


def seen(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return what identifies a message's form, by its id."""
    return {str(message.id): _form(message) for message in messages}


def _changed(messages: Sequence[BaseMessage], *, known: Known, thread: UUID) -> Iterator[Row]:
    for position, message in enumerate(messages):
        if known.get(str(message.id)) != _form(message):
            yield _row(message, position=position, thread=thread)


def _form(message: BaseMessage) -> Any:
    return message.text, getattr(message, "status", None)


def _row(message: BaseMessage, *, position: int, thread: UUID) -> Row:
    metadata = message.response_metadata
    return {
        "thread": thread,
        "message_id": str(message.id),
        "position": position,
        "role": ROLES[message.type],
        # what the person typed: the notices that travelled to the model with it have rows of their own
        "text": plain.text(str(message.additional_kwargs.get("text", message.text))),
        "tool_calls": Jsonb(_calls(message)),
        "tool_call_id": message.tool_call_id if isinstance(message, ToolMessage) else None,
        "status": message.status if isinstance(message, ToolMessage) else None,
        "model": metadata.get("model_name"),
        "prompt_version": metadata.get("prompt_version"),
        "usage": Jsonb(dict(message.usage_metadata)) if isinstance(message, AIMessage) and message.usage_metadata else None,
    }


def _calls(message: BaseMessage) -> list[Row]:
    if not isinstance(message, AIMessage):
        return []
    problems = message.additional_kwargs.get("problems", {})
    return [
        {"index": index, "id": call["id"], "tool": call["name"], "arguments": call["args"]}
        | ({"problem": problems[str(index)]} if str(index) in problems else {})
        for index, call in enumerate(message.tool_calls)
    ]
