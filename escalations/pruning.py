"""Scans go when they are old. And which messages of the outbox questions refer to, so that those stay.

Of an effect its page shows, and notices of what is still undecided.
"""

from datetime import datetime
from typing import Any

import structlog
from psycopg import Connection

CHUNK = 2000  # scans in one transaction
log = structlog.get_logger()

MESSAGES = """
SELECT m.id FROM public.outbox_message m
WHERE m.id = ANY(%(ids)s) AND 'message:' || m.id IN (SELECT e.object FROM public.escalations_escalation e)
UNION ALL
SELECT m.id FROM public.outbox_message m
JOIN public.escalations_escalation e ON e.id = (m.payload ->> 'escalation')::bigint AND e.state IN ('open', 'claimed')
WHERE m.id = ANY(%(ids)s) AND m.topic LIKE 'notify.%%'
UNION ALL
SELECT r.message_id FROM public.outbox_request r WHERE r.message_id = ANY(%(ids)s) AND r.escalation IS NOT NULL
"""
PRUNE_SCANS = "SELECT public.escalations_prune_scans(%s, %s)"


def scans(conn: Connection[Any], *, before: datetime) -> int:
    """Let scans go that were finished before then, a chunk in a transaction, and return how many; `conn` is the keeper's."""
    gone = 0
    while found := conn.execute(PRUNE_SCANS, (before, CHUNK)).fetchone():
        gone += found[0]
        if found[0] < CHUNK:
            break
    if gone:
        log.info("escalations.scans.pruned", number=gone)
    return gone
