"""What a batch has done, read inside its transaction before it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from agent import digests
from ledger import changes, wiring
from ledger.attempts import Attempt

Row = dict[str, Any]

MESSAGES = """
SELECT call_index, topic, aggregate, payload FROM public.outbox_message WHERE thread = %s AND ai_message_id = %s ORDER BY id
"""


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The rows that changed, in order, and the messages that leave when it commits."""

    changes: Sequence[Row]
    messages: Sequence[Mapping[str, Any]]

    @property
    def digest(self) -> bytes:
        """Return what makes these the same effects again."""
        return digests.digest(changes=self.changes, messages=self.messages, masks=wiring.plugged("BACKSTOP_MASKS"))


def read(conn: Connection[Any], attempt: Attempt) -> Effects:
    """Wait for the effects of everything that was sent so far."""
    changed = changes.ask(conn, attempt_id=attempt.id)
    leaving = conn.execute(MESSAGES, (attempt.thread, attempt.ai_message_id))
    names = ("call_index", "topic", "aggregate", "payload")
    return Effects(changes=changes.read(changed), messages=[dict(zip(names, row, strict=True)) for row in leaving.fetchall()])
