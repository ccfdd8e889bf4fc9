"""Leaving a destination alone that turns everybody away: it is parked, then one message tries whether it is open again."""

import random
from typing import Any

import structlog
from psycopg import Connection
from psycopg.rows import dict_row

from ledger import faults
from outbox import backoff
from outbox.leases import Row
from outbox.outcomes import Outcome

log = structlog.get_logger()

NOW = "INSERT INTO public.outbox_destination (name) VALUES (%s) ON CONFLICT (name) DO NOTHING"
LOCKED = "SELECT refusals, parked_until > now() AS parked FROM public.outbox_destination WHERE name = %s FOR UPDATE"
PARK = """
UPDATE public.outbox_destination
SET parked_until = now() + make_interval(secs => %(pause)s), parked_because = %(because)s, refusals = %(refusals)s
WHERE name = %(name)s
"""
OPEN = "UPDATE public.outbox_destination SET parked_until = NULL, parked_because = NULL, refusals = 0 WHERE name = %s"
TRY_NEXT = "UPDATE public.outbox_destination SET parked_until = now() WHERE name = %s AND parked_until IS NOT NULL"
# Seconds until a destination that something is due for has room again.
OPENS = """
SELECT extract(epoch FROM min(room.at) - now())::float FROM public.outbox_destination o
CROSS JOIN LATERAL (SELECT greatest(o.parked_until, o.spent_until - (o.burst - 1) * (interval '1 min' / o.rate))) AS room (at)
WHERE room.at > now()
  AND EXISTS (SELECT FROM public.outbox_message m WHERE m.destination = o.name AND m.state IN ('ready', 'uncertain', 'accepted')
              AND NOT m.blocked AND m.next_attempt_at <= now())
"""
ASKED = """
SELECT id, destination FROM public.outbox_request WHERE kind = 'resume' AND carried_out_at IS NULL
ORDER BY id FOR UPDATE SKIP LOCKED
"""
AT_ONCE = """
UPDATE public.outbox_message SET next_attempt_at = now()
WHERE destination = %s AND state IN ('ready', 'uncertain', 'accepted') AND NOT blocked AND spared > 0 AND next_attempt_at > now()
"""
DONE = "UPDATE public.outbox_request SET carried_out_at = now(), outcome = %s WHERE id = %s"


def turned_away(outcome: Outcome) -> bool:
    """Return whether the destination would have refused any message just now: such a try uses up no attempt."""
    return outcome.kind == "park" or outcome.http_status == 429 or (outcome.error or "").endswith("rate_limit")


def heard(conn: Connection[Any], *, message: Row, outcome: Outcome) -> Row:
    """Park or open the message's destination after a call, and return the message; call it before anything is settled."""
    if parks(outcome):
        _park(conn, name=message["destination"], outcome=outcome, probing=message["probing"])
    elif not message["probing"]:
        return message
    elif outcome.http_status is None:  # no answer says nothing: the next one tries
        _park(conn, name=message["destination"], outcome=outcome, probing=True, again=True)
    else:
        conn.execute(OPEN, (message["destination"],))
        log.info("outbox.destination.opened", destination=message["destination"])
    faults.reach("destination.heard", thread=message["thread"])
    return message | {"probing": False}


def parks(outcome: Outcome) -> bool:
    """Return whether everybody should stay away for a while. A lock that took too long concerns one object only."""
    return turned_away(outcome) and not (outcome.error or "").endswith("lock_timeout")


def try_next(conn: Connection[Any], *, destination: str) -> None:
    """Let the next message try a parked destination: the one that should have found out has not asked it."""
    conn.execute(TRY_NEXT, (destination,))


def opens_in(conn: Connection[Any]) -> float | None:
    """Return seconds until a destination has room again that something is due for; None when none is closed."""
    row = conn.execute(OPENS).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def resume(conn: Connection[Any]) -> int:
    """Let parked destinations be tried now of which people ask it, and return how many."""
    with conn.transaction():
        asked = conn.execute(ASKED).fetchall()
        for request, destination in asked:
            was = conn.execute(TRY_NEXT, (destination,)).rowcount
            conn.execute(AT_ONCE, (destination,))
            conn.execute(DONE, ("tried again" if was else "it was open", request))
            faults.reach("destination.resumed")
            log.info("outbox.destination.resumed", destination=destination, request=request)
    return len(asked)


def _park(conn: Connection[Any], *, name: str, outcome: Outcome, probing: bool, again: bool = False) -> None:
    """Park a destination for longer than last time; what left before it was parked tells nothing new.

    `again` keeps the reason and the length of its pause.
    """
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(NOW, (name,))
        row = cursor.execute(LOCKED, (name,)).fetchone()
        assert row is not None
        if row["parked"] and not probing:
            return
        refusals = max(1, row["refusals"] + (not again))
        first, most = backoff.REFUSED if outcome.kind == "park" else backoff.SLOWED
        chance = random.random()  # noqa: S311
        pause = backoff.pause(refusals=refusals, jitter=chance, first=first, most=most, floor=outcome.retry_after)
        cursor.execute(PARK, {"name": name, "pause": pause, "because": outcome.error or "no answer", "refusals": refusals})
    log.warning("outbox.destination.parked", destination=name, because=outcome.error, seconds=round(pause, 1), refusals=refusals)
