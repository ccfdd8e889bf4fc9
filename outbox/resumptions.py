"""Asking that a destination which is parked is tried again now. The page records it, the outbox worker does it."""

from typing import Any

from psycopg import Connection

ASK = """
INSERT INTO public.outbox_request (destination, kind, reason, requested_by)
SELECT name, 'resume', %(reason)s, %(user)s FROM public.outbox_destination
WHERE name = %(destination)s AND parked_until IS NOT NULL
ON CONFLICT DO NOTHING
"""


class NotParked(Exception):
    """It is open, or the same was asked before and is not done yet."""


def ask(conn: Connection[Any], *, destination: str, reason: str, user: int) -> None:
    """Record the request in the caller's transaction; raise NotParked. Ring outbox.deliver after the commit."""
    if conn.execute(ASK, {"destination": destination, "reason": reason, "user": user}).rowcount != 1:
        raise NotParked(destination)
