"""Staff messages that wait for the driver: taken one at a time, in order, each exactly once."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.messages import HumanMessage
from psycopg import Connection

from agent import leases, threads
from agent.leases import Lease

# A notice as the agent reads it: what somebody said who stepped in, with the name.
FACT = (
    "CASE n.kind WHEN 'person_said' THEN coalesce((SELECT u.username FROM public.auth_user u WHERE u.id = n.author), 'A person')"
    " || ' stepped in and answered instead of you: “' || n.text || '”' ELSE n.text END"
)

# Taking comes before the checkpoint, and locks the row against edits: what the agent reads is what staff see. Facts from
# outside travel with the message, but not what is told to staff only. Nothing is taken while a person answers instead.
TAKE = f"""
WITH next AS (
    SELECT id FROM public.agent_staff_message c WHERE thread = %(thread)s AND state = 'queued' AND NOT {threads.IS_SILENT}
    ORDER BY number LIMIT 1 FOR UPDATE
), taken AS (
    UPDATE public.agent_staff_message m SET state = 'taken', taken_at = clock_timestamp() FROM next WHERE m.id = next.id
    RETURNING m.id, m.author, m.text
), told AS (
    UPDATE public.agent_notice n SET told_in = taken.id FROM taken
    WHERE n.thread = %(thread)s AND n.told_in IS NULL AND n.state <> 'info'
    RETURNING n.id, n.kind, n.author, n.text
)
SELECT taken.id, taken.author, taken.text, ARRAY(SELECT {FACT} FROM told n ORDER BY n.id) FROM taken
"""  # noqa: S608 - joined from constants
IS_EMPTY = "SELECT WHERE NOT EXISTS (SELECT FROM public.agent_staff_message WHERE thread = %s AND state = 'queued')"
# A crash after taking, before the checkpoint: the newest taken message is not in the thread yet.
LAST_TAKEN = f"""
SELECT m.id, m.author, m.text, ARRAY(SELECT {FACT} FROM public.agent_notice n WHERE n.told_in = m.id ORDER BY n.id)
FROM public.agent_staff_message m WHERE m.thread = %s AND m.state = 'taken' ORDER BY m.taken_at DESC, m.number DESC LIMIT 1
"""  # noqa: S608 - joined from constants


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A staff message on its way into the thread."""

    id: UUID
    author: int
    text: str
    notices: list[str]

    def message(self) -> HumanMessage:
        """Return the message as the model reads it: what happened meanwhile first."""
        lines = [f"Notice: {' '.join(notice.split())}" for notice in self.notices]  # a line each: the rest is the request
        return HumanMessage(
            id=message_id(self.id),
            content="\n".join([*lines, self.text]),
            additional_kwargs={"text": self.text, "author": self.author},
        )


def message_id(staff_message: UUID) -> str:
    """Return the id that a staff message has in the thread."""
    return f"staff:{staff_message}"


def take(conn: Connection[Any], lease: Lease) -> Taken | None:
    """Take the next queued message, in one fenced transaction. Raises LeaseLost."""
    if conn.execute(IS_EMPTY, (lease.thread,)).fetchone():
        return None  # without a lock, and so without waiting for the disk
    with leases.fenced(conn, lease):
        cursor = conn.execute(TAKE, {"thread": lease.thread})
    return _taken(cursor.fetchone())


def taken_but_unseen(conn: Connection[Any], lease: Lease, *, seen: Collection[str]) -> Taken | None:
    """Return the message that was taken last if it is not among the ids of the thread's messages."""
    found = _taken(conn.execute(LAST_TAKEN, (lease.thread,)).fetchone())
    return None if found is None or message_id(found.id) in seen else found


def _taken(row: Any) -> Taken | None:
    return row and Taken(id=row[0], author=row[1], text=row[2], notices=row[3])
