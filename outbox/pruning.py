"""Pruning: finished messages go with their evidence once they are old, unless a row elsewhere refers to them.

The keeper does it, a chunk in a transaction, in the order of ids. The database lets it take only what is finished and a month
old (outbox/migrations/0002_rows.py); what is needed is found out here, from queries that each app declares.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from psycopg import Connection, sql

from ledger import faults, wiring
from outbox import transitions

CHUNK = 2000  # messages in one transaction
log = structlog.get_logger()

# The trail shows what an executed call promised, and what settling it changed.
LEDGER = """
SELECT c.message_id FROM public.ledger_row_change c WHERE c.message_id = ANY(%(ids)s)
UNION ALL
SELECT m.id FROM public.outbox_message m JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
WHERE m.id = ANY(%(ids)s)
"""
OLD = sql.SQL("""
SELECT max(id), coalesce(bool_and(created_at >= %(before)s), true),
    coalesce(array_agg(id) FILTER (WHERE state IN ({final}) AND finished_at < %(before)s), '{{}}')
FROM (SELECT id, state, created_at, finished_at FROM public.outbox_message
      WHERE id > %(after)s ORDER BY id LIMIT %(most)s) AS stretch
""").format(final=sql.SQL(", ").join(map(sql.Literal, transitions.FINAL)))
PRUNE = "SELECT public.outbox_prune(%s::bigint[], %s)"
PRUNE_EVENTS = "SELECT public.outbox_prune_events(%s, %s)"


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """What became of one stretch of the messages."""

    last: int  # the id to go on after
    pruned: int
    done: bool  # nothing that comes after it can be old


def prune(conn: Connection[Any], *, before: datetime, after: int = 0, go_on: Callable[[], bool] = lambda: True) -> int | None:
    """Prune messages, then events, that were finished before then; return the message to go on after, or None when all is done.

    `conn` is the keeper's, in autocommit mode.
    """
    last = messages(conn, before=before, after=after, go_on=go_on)
    if last is None and (gone := events(conn, before=before)):
        log.info("outbox.events.pruned", number=gone)
    return last


def messages(conn: Connection[Any], *, before: datetime, after: int = 0, go_on: Callable[[], bool] = lambda: True) -> int | None:
    """Prune messages, chunk by chunk, and return after which to go on, or None when all were looked at."""
    pruned = 0
    while go_on():
        chunk = one_chunk(conn, before=before, after=after)
        after, pruned = chunk.last, pruned + chunk.pruned
        if chunk.done:
            _tell(pruned)
            return None
    _tell(pruned)
    return after


def one_chunk(conn: Connection[Any], *, before: datetime, after: int) -> Chunk:
    """Look at the next messages and prune those of them that are old and that nothing refers to."""
    with conn.transaction():
        row = conn.execute(OLD, {"before": before, "after": after, "most": CHUNK}).fetchone()
        last, young, old = row or (None, True, [])
        free = sorted(set(old) - _needed(conn, old))
        pruned = conn.execute(PRUNE, (free, before)).fetchone() if free else None
        faults.reach("prune.taken")
    faults.reach("prune.done")
    return Chunk(last=last or after, pruned=pruned[0] if pruned else 0, done=last is None or young)


def events(conn: Connection[Any], *, before: datetime) -> int:
    """Prune events of the provider that were processed before then and whose message is gone; return how many."""
    gone = 0
    while found := conn.execute(PRUNE_EVENTS, (before, CHUNK)).fetchone():
        gone += found[0]
        if found[0] < CHUNK:
            break
    return gone


def _needed(conn: Connection[Any], ids: list[int]) -> set[int]:
    """Return which of the messages rows elsewhere refer to."""
    queries = wiring.plugged_all("BACKSTOP_NEEDS_MESSAGES") if ids else ()
    return {row[0] for query in queries for row in conn.execute(query, {"ids": ids}).fetchall()}


def _tell(pruned: int) -> None:
    if pruned:
        log.info("outbox.messages.pruned", number=pruned)
