"""The verbs of what staff send: send, edit, cancel, stop, resume. The caller rings the bell after COMMIT."""

from typing import Any
from uuid import UUID, uuid4

import structlog
from psycopg import Connection

from agent import events

log = structlog.get_logger()

MOST_QUEUED = 20


class Unsendable(Exception):
    """The message or the wish cannot be taken; the text is one sentence for whoever sent it."""


class MessageConflict(Unsendable):
    """Another message has this id."""


class QueueFull(Unsendable):
    """Too many messages wait already."""


class AlreadyTaken(Unsendable):
    """The message does not wait any more."""


SEND = """
INSERT INTO public.agent_staff_message (id, thread, number, author, text)
SELECT %(id)s, %(thread)s, coalesce(max(number), 0) + 1, %(author)s, %(text)s
FROM public.agent_staff_message WHERE thread = %(thread)s
ON CONFLICT (id) DO NOTHING
"""
# A page that was kept or gone back to has an old id: another text under it is another message, never silently dropped.
KNOWN = "SELECT thread = %(thread)s AND author = %(author)s AND text = %(text)s FROM public.agent_staff_message WHERE id = %(id)s"
QUEUED = "SELECT count(*) FROM public.agent_staff_message WHERE thread = %s AND state = 'queued'"


def send(conn: Connection[Any], *, thread: UUID, message: UUID, author: int, text: str) -> bool:
    """Queue a message and return whether it is new: the same id is the same message.

    Raises QueueFull, or MessageConflict when the id is another conversation's, author's or text's.
    """
    values = {"id": message, "thread": thread, "author": author, "text": text}
    with conn.transaction():
        conn.execute("INSERT INTO public.agent_thread (thread) VALUES (%s) ON CONFLICT (thread) DO NOTHING", (thread,))
        events.emit(conn, thread=thread, kind="feed")  # its row lock orders the numbers of a thread
        if known := conn.execute(KNOWN, values).fetchone():
            if not known[0]:
                raise MessageConflict("Another message has this id already. Reload the page and send it again.")
            return False
        waiting = conn.execute(QUEUED, (thread,)).fetchone()
        if waiting and waiting[0] >= MOST_QUEUED:
            raise QueueFull(f"{MOST_QUEUED} messages wait already. Cancel one, or wait until the agent has taken some.")
        if conn.execute(SEND, values).rowcount == 0:
            raise MessageConflict("Another message has this id already. Reload the page and send it again.")
    return True


def edit(conn: Connection[Any], *, thread: UUID, message: UUID, author: int, text: str) -> None:
    """Change a waiting message of one's own. Raises AlreadyTaken."""
    _change(
        conn,
        thread=thread,
        statement="UPDATE public.agent_staff_message SET text = %(text)s"
        " WHERE id = %(id)s AND thread = %(thread)s AND author = %(author)s AND state = 'queued'",
        values={"id": message, "text": text, "author": author},
        otherwise="This message is not waiting any more, or it is somebody else's. Nothing was changed.",
    )


def cancel(conn: Connection[Any], *, thread: UUID, message: UUID) -> None:
    """Take a waiting message back. Raises AlreadyTaken."""
    _change(
        conn,
        thread=thread,
        statement="UPDATE public.agent_staff_message SET state = 'cancelled'"
        " WHERE id = %(id)s AND thread = %(thread)s AND state = 'queued'",
        values={"id": message},
        otherwise="The agent has taken this message by now. Stop the agent instead.",
    )


def stop(conn: Connection[Any], *, thread: UUID, user: int) -> None:
    """Ask a running agent to stop before its next step; what is applied stays applied. Raises Unsendable."""
    _change(
        conn,
        thread=thread,
        statement="UPDATE public.agent_thread SET stop_requested_at = now(), stop_requested_by = %(user)s"
        " WHERE thread = %(thread)s AND state = 'running'",
        values={"user": user},
        otherwise="The agent is not running.",
    )


def resume(conn: Connection[Any], *, thread: UUID, user: int, name: str) -> None:
    """Make a halted thread due for the sweeper now, and leave a notice of who asked. Raises Unsendable."""
    with conn.transaction():
        done = conn.execute("UPDATE public.agent_thread SET next_sweep_at = now() WHERE thread = %s", (thread,))
        if done.rowcount == 0:
            raise Unsendable("Nothing was sent in this conversation yet.")
        conn.execute(
            "INSERT INTO public.agent_notice (thread, kind, state, text, object) VALUES (%s, 'resumed', 'info', %s, %s)",
            (thread, f"{name} asked the agent to go on.", f"user:{user}:{uuid4()}"),
        )
        events.emit(conn, thread=thread, kind="status")
    log.info("agent.thread.resumed_by_hand", thread=str(thread), user=user)


def _change(conn: Connection[Any], *, thread: UUID, statement: str, values: dict[str, Any], otherwise: str) -> None:
    """Run a compare-and-set and tell the browsers; nothing changed is `AlreadyTaken`."""
    with conn.transaction():
        if conn.execute(statement, {"thread": thread} | values).rowcount == 0:
            raise AlreadyTaken(otherwise)
        events.emit(conn, thread=thread, kind="feed")
