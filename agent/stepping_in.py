"""The verbs of a person who answers instead of the agent: step in, say, hand back. The caller rings the bell after COMMIT.

While `agent_thread.stepped_in_by` names somebody, the agent takes no message and no decision, and what it is at stops as
with *Stop*. What is applied stays applied; previews for reviewers are still made.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import structlog
from psycopg import Connection

from agent import events
from agent.messages import MessageConflict, Unsendable
from ledger.spans import clock

log = structlog.get_logger()

SAID = "person_said"
LOCK = """
SELECT t.stepped_in_by, t.stepped_in_at, coalesce(u.username, 'Somebody')
FROM public.agent_thread t LEFT JOIN public.auth_user u ON u.id = t.stepped_in_by WHERE t.thread = %s FOR NO KEY UPDATE OF t
"""
# What is unfinished stops as if staff had stopped it, also when its worker has died meanwhile.
STEP_IN = """
UPDATE public.agent_thread SET stepped_in_by = %(user)s, stepped_in_at = clock_timestamp(),
    stop_requested_at = CASE WHEN state IN ('running', 'stuck') THEN coalesce(stop_requested_at, now()) END,
    stop_requested_by = CASE WHEN state IN ('running', 'stuck') THEN coalesce(stop_requested_by, %(user)s) END
WHERE thread = %(thread)s
"""
HAND_BACK = "UPDATE public.agent_thread SET stepped_in_by = NULL, stepped_in_at = NULL, next_sweep_at = now() WHERE thread = %s"
# As with a staff message, the id is the page's, and another text under it is another message.
KNOWN = """
SELECT author = %(user)s AND text = %(text)s FROM public.agent_notice
WHERE thread = %(thread)s AND kind = 'person_said' AND object = %(id)s
"""
NOTE = "INSERT INTO public.agent_notice (thread, kind, state, text, object, author) VALUES (%s, %s, %s, %s, %s, %s)"


class Elsewhere(Unsendable):
    """Somebody was first, or it is not this person's to do; the sentence names who has stepped in."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Who has stepped in, and since when."""

    user: int
    name: str
    since: datetime


def step_in(conn: Connection[Any], *, thread: UUID, user: int, name: str, instead_of: int | None = None) -> None:
    """Silence the agent and answer oneself; `instead_of` is whoever has stepped in so far, as the page showed it.

    Once more by the same person changes nothing. Raises Elsewhere, with the name, when somebody else was first.
    """
    with conn.transaction():
        conn.execute("INSERT INTO public.agent_thread (thread) VALUES (%s) ON CONFLICT (thread) DO NOTHING", (thread,))
        person = _locked(conn, thread=thread)
        if person and person.user == user:
            return
        if (person.user if person else None) != instead_of:
            raise Elsewhere(f"{_who(person)} Look at the conversation before you step in.")
        conn.execute(STEP_IN, {"thread": thread, "user": user})
        deed = f"{name} stepped in" + (f" for {person.name}" if person else "")
        _note(conn, thread=thread, kind="stepped_in", text=f"{deed}. The agent is silent until they hand back.", user=user)
    log.info("agent.thread.stepped_in", thread=str(thread), user=user, instead_of=instead_of)


def say(conn: Connection[Any], *, thread: UUID, message: UUID, user: int, text: str) -> bool:
    """Keep what a person who stepped in writes, and return whether it is new: the same id is the same message.

    Everybody sees it at once; the agent reads it with the next staff message. Raises Elsewhere or MessageConflict.
    """
    with conn.transaction():
        person = _locked(conn, thread=thread)
        if known := conn.execute(KNOWN, {"thread": thread, "id": str(message), "user": user, "text": text}).fetchone():
            if not known[0]:
                raise MessageConflict("Another message has this id already. Reload the page and send it again.")
            return False
        if person is None or person.user != user:
            raise Elsewhere(f"{_who(person)} Your message was not posted.")
        conn.execute(NOTE, (thread, SAID, "said", text, str(message), user))
        events.emit(conn, thread=thread, kind="feed")
    return True


def hand_back(conn: Connection[Any], *, thread: UUID, user: int, name: str, anybodys: bool = False) -> None:
    """Let the agent go on with what waits. `anybodys`: the person may hand back also for somebody else.

    The caller rings `agent.drive`. Raises Elsewhere.
    """
    with conn.transaction():
        person = _locked(conn, thread=thread)
        if person is None:
            raise Elsewhere("The conversation was handed back already. Nothing was changed.")
        if person.user != user and not anybodys:
            raise Elsewhere(f"{_who(person)} Only they hand back; step in first.")
        conn.execute(HAND_BACK, (thread,))
        deed = f"{name} handed back" + ("" if person.user == user else f" for {person.name}")
        _note(conn, thread=thread, kind="handed_back", text=f"{deed}. The agent goes on.", user=user)
    log.info("agent.thread.handed_back", thread=str(thread), user=user, stepped_in=person.user)


def _locked(conn: Connection[Any], *, thread: UUID) -> Person | None:
    """Return who has stepped in, and let nobody else until the transaction ends."""
    row = conn.execute(LOCK, (thread,)).fetchone()
    return Person(user=row[0], name=row[2], since=row[1]) if row and row[0] is not None else None


def _who(person: Person | None) -> str:
    return f"{person.name} stepped in at {clock(person.since)}." if person else "Nobody has stepped in any more."


def _note(conn: Connection[Any], *, thread: UUID, kind: str, text: str, user: int) -> None:
    """Leave a line that staff read and the agent does not."""
    conn.execute(NOTE, (thread, kind, "info", text, str(uuid4()), user))
    events.emit(conn, thread=thread, kind="status")
