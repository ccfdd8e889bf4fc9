"""The text the agent is writing right now: published chunk by chunk, and kept as a row for whoever joins or has no broker."""

from dataclasses import dataclass
from time import monotonic
from typing import Any

import structlog
from psycopg import Connection
from psycopg_pool import ConnectionPool

from agent import events
from agent.leases import Lease
from ledger import connections

log = structlog.get_logger()

PUBLISH_EVERY = 0.03  # seconds
SAVE_EVERY = 0.2  # seconds

# A worker that lost its lease must not overwrite what the new one writes, nor leave a text that nobody deletes. The answer says
# whether staff want it to stop.
SAVE = """
INSERT INTO public.agent_draft AS draft (thread, fence, text, updated_at)
SELECT t.thread, t.fence, %(text)s, clock_timestamp()
FROM public.agent_thread t WHERE t.thread = %(thread)s AND t.fence = %(fence)s
ON CONFLICT (thread) DO UPDATE SET fence = excluded.fence, text = excluded.text, updated_at = excluded.updated_at
WHERE draft.fence <= excluded.fence
RETURNING (SELECT t.stop_requested_at IS NOT NULL FROM public.agent_thread t WHERE t.thread = draft.thread)
"""
CLEAR = "DELETE FROM public.agent_draft WHERE thread = %s AND fence <= %s"


@dataclass(kw_only=True)
class Draft:
    """One answer while it is written. The checkpoint that holds the finished message deletes the row (agent/checkpoints.py)."""

    pool: ConnectionPool[Connection[Any]]
    lease: Lease
    text: str = ""
    published_at: float = -1.0
    saved_at: float = -1.0

    def add(self, piece: str) -> bool:
        """Append a piece, show it if it is time, and return whether staff asked for a stop."""
        self.text += piece
        now = monotonic()
        if not piece or now - self.published_at < PUBLISH_EVERY:
            return False
        self.published_at = now
        events.publish(self.lease.thread, "draft", text=self.text)
        if now - self.saved_at < SAVE_EVERY:
            return False
        self.saved_at = now
        return self._save()

    def _save(self) -> bool:
        """Keep the text as a row. A draft is a courtesy: without the database the answer goes on, to fail at its checkpoint."""
        try:
            with self.pool.connection(timeout=1) as conn:
                row = conn.execute(SAVE, {"thread": self.lease.thread, "fence": self.lease.fence, "text": self.text}).fetchone()
        except connections.AWAY as error:
            log.warning("agent.draft.unsaved", thread=str(self.lease.thread), error=type(error).__name__)
            return False
        return bool(row and row[0])

    def drop(self) -> None:
        """Take the text back: the answer failed or is given up."""
        try:
            with self.pool.connection(timeout=1) as conn:
                conn.execute(CLEAR, (self.lease.thread, self.lease.fence))
        except connections.AWAY as error:
            log.warning("agent.draft.left", thread=str(self.lease.thread), error=type(error).__name__)
        events.publish(self.lease.thread, "draft", text="")
