"""The provider's word about an object is true, whatever we had believed, and whoever brings it: an event, a look-up, a person."""

from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox import endings, settling, transitions
from outbox.endings import Delivery
from outbox.leases import Row
from outbox.outcomes import PUT_RIGHT, Outcome
from outbox.transitions import Event

LOCK = "SELECT * FROM public.outbox_message WHERE id = %s FOR UPDATE"


def locked(conn: Connection[Any], *, message: int) -> Row:
    """Return a message under its row lock, in the caller's transaction."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(LOCK, (message,)).fetchone()
    assert row is not None  # whoever asks has its id from its row
    return row


def take(
    conn: Connection[Any],
    *,
    message: int,
    outcome: Outcome,
    source: str,
    delivery: Delivery | None = None,
    known: bool = False,
) -> tuple[Row, bool]:
    """Let the provider's word count, with its effect on the books, and return the message and whether it said anything new.

    Also late: of a message that is dead, that was refused, or whose success is taken back. `source` is how it is known. What a
    person has put right by hand stays so, whatever the object says of itself, until a person takes its word. `known` says that
    a person sees to what comes of it.
    """
    with conn.transaction():
        before = locked(conn, message=message)
        event = transitions.told(before["state"], outcome.kind)
        if event is None or (before["refusal"] == PUT_RIGHT and source != "person"):
            return before, False
        if event is Event.OVERTURN:
            after = settling.overturn(conn, message=before, outcome=outcome, source=source, delivery=delivery)
        else:
            after = settling.adopt(
                conn, message=before, outcome=outcome, source=source, delivery=delivery, event=event, known=known
            )
    return after or before, after is not None


def note(conn: Connection[Any], *, message: Row, outcome: Outcome, delivery: Delivery) -> None:
    """Keep what a look-up showed that changes nothing: the evidence, and the object for people who compare it."""
    if outcome.seen is not None:
        conn.execute("UPDATE public.outbox_message SET seen = %s WHERE id = %s", (Jsonb(dict(outcome.seen)), message["id"]))
    endings.record(conn, message=message, delivery=delivery)
