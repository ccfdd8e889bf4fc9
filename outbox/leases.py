"""Taking a message and keeping it: one statement each, on the database's clock, guarded by the lease's token.

A lease is a fresh UUID and a time. Whoever finds its token gone has lost the message and touches it no more.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection, sql
from psycopg.rows import dict_row

from outbox import transitions
from outbox.transitions import Event

Row = dict[str, Any]

LEASE_SECONDS = 120  # far above the provider's time-outs (settings.STRIPE_TIMEOUTS)
KEY_HOURS = 20  # the provider may forget a key after 24


def states(names: Iterable[str]) -> sql.Composable:
    """Return states as text of the statement: as parameters they would keep a generic plan from the partial indexes."""
    return sql.SQL(", ").join(map(sql.Literal, names))


CLAIM = sql.SQL("""
WITH due AS MATERIALIZED (  -- without it a plan may claim more rows than one
    SELECT m.id, m.state FROM public.outbox_message m
    WHERE m.state IN ({claimable}) AND m.next_attempt_at <= now()
      AND NOT EXISTS (SELECT 1 FROM public.outbox_message older
                      WHERE older.aggregate = m.aggregate AND older.id < m.id AND older.state IN ({unfinished}))
      AND NOT EXISTS (SELECT 1 FROM public.outbox_request r WHERE r.message_id = m.id AND r.carried_out_at IS NULL)
    ORDER BY m.next_attempt_at, m.id LIMIT 1
    FOR UPDATE OF m SKIP LOCKED
)
UPDATE public.outbox_message m
SET state = 'leased', claimed_from = due.state, lease_token = pg_catalog.gen_random_uuid(), lease_owner = %(owner)s,
    leased_until = now() + make_interval(secs => %(lease)s), sending_at = NULL,
    attempts = m.attempts + (due.state <> 'accepted')::integer  -- counted now: a message that kills its worker runs out too
FROM due WHERE m.id = due.id
RETURNING m.*, now() >= m.give_up_at AS too_old, now() >= m.key_deadline AS key_expired
""").format(claimable=states(transitions.sources(Event.CLAIM)), unfinished=states(transitions.UNFINISHED))
BEGIN_SEND = """
UPDATE public.outbox_message
SET sending_at = now(), sends = sends + 1, first_sent_at = coalesce(first_sent_at, now()),
    key_deadline = coalesce(key_deadline, now() + make_interval(hours => %(key_hours)s)),
    leased_until = now() + make_interval(secs => %(lease)s)
WHERE id = %(id)s AND state = ANY(%(sources)s) AND lease_token = %(token)s AND leased_until > now()
  AND (key_deadline IS NULL OR key_deadline > now())
RETURNING sending_at, first_sent_at, key_deadline, sends
"""
RENEW = """
UPDATE public.outbox_message SET leased_until = now() + make_interval(secs => %(lease)s)
WHERE id = %(id)s AND state = 'leased' AND lease_token = %(token)s AND leased_until > now()
RETURNING id
"""
RENEW_KEY = """
UPDATE public.outbox_message SET key_generation = key_generation + 1, key_deadline = NULL
WHERE id = %(id)s AND state = 'leased' AND lease_token = %(token)s
RETURNING *, false AS key_expired
"""
ADVANCE = """
UPDATE public.outbox_message
SET step = %(step)s, provider_id = %(provider_id)s, provider_status = %(provider_status)s, sending_at = NULL,
    key_generation = CASE WHEN step = %(step)s THEN key_generation ELSE 1 END,
    key_deadline = CASE WHEN step = %(step)s THEN key_deadline END,
    leased_until = now() + make_interval(secs => %(lease)s)
WHERE id = %(id)s AND state = ANY(%(sources)s) AND lease_token = %(token)s
RETURNING *, now() >= key_deadline AS key_expired
"""
RESCUE = """
WITH lost AS MATERIALIZED (
    SELECT id, lease_token, steps -> step ->> 'name' AS step, sending_at FROM public.outbox_message
    WHERE state = 'leased' AND leased_until < now() ORDER BY leased_until LIMIT 200 FOR UPDATE SKIP LOCKED
), back AS (
    UPDATE public.outbox_message m
    SET state = CASE WHEN m.sending_at IS NULL THEN m.claimed_from ELSE 'uncertain' END,
        ever_unknown = m.ever_unknown OR m.sending_at IS NOT NULL,
        claimed_from = NULL, lease_token = NULL, lease_owner = NULL, leased_until = NULL, sending_at = NULL,
        next_attempt_at = now()
    FROM lost WHERE m.id = lost.id AND m.state = 'leased' AND m.leased_until < now()
    RETURNING m.id, m.state
), evidence AS (
    INSERT INTO public.outbox_delivery (message_id, lease_token, step, outcome, error, duration_ms)
    SELECT id, lease_token, step, 'uncertain', 'the worker was lost', 0 FROM lost WHERE sending_at IS NOT NULL
)
SELECT id, state FROM back
"""


class LeaseLost(Exception):
    """Somebody else has the message by now, or nobody: this worker may not touch it."""


def claim(conn: Connection[Any], *, owner: str) -> Row | None:
    """Lease the message that is due longest and return it, or None.

    Skipped: what an older unfinished message of its aggregate keeps waiting, and what a person's request is open for.
    """
    return _one(conn, CLAIM, {"owner": owner, "lease": LEASE_SECONDS})


def begin_send(conn: Connection[Any], *, message: Row) -> Row:
    """Write, before a call, that it is about to leave; renews the lease. Return the message as it is now. Raise LeaseLost.

    A key that is too old to be sent counts as a lost lease: the caller renews or buries before it comes here.
    """
    given = _held(message) | {"sources": transitions.sources(Event.SEND), "key_hours": KEY_HOURS}
    return message | _kept(_one(conn, BEGIN_SEND, given), message)


def renew(conn: Connection[Any], *, message: Row) -> None:
    """Prolong the lease before a look-up. Raise LeaseLost."""
    _kept(_one(conn, RENEW, _held(message)), message)


def renew_key(conn: Connection[Any], *, message: Row) -> Row:
    """Give the current step its next key, for a step whose repeat can never move money twice. Raise LeaseLost."""
    return _kept(_one(conn, RENEW_KEY, _held(message)), message)


def advance(conn: Connection[Any], *, message: Row, step: int, provider_id: str, provider_status: str | None) -> Row:
    """Store what the provider calls the object, and go on to `step` within the lease. Raise LeaseLost."""
    given = _held(message) | {
        "sources": transitions.sources(Event.ADVANCE),
        "step": step,
        "provider_id": provider_id,
        "provider_status": provider_status,
    }
    return _kept(_one(conn, ADVANCE, given), message)


def rescue(conn: Connection[Any]) -> list[tuple[int, str]]:
    """Take messages from workers that are gone and return ids and states: back where they were, or uncertain if sent."""
    return [(row[0], row[1]) for row in conn.execute(RESCUE).fetchall()]


def _held(message: Row) -> dict[str, Any]:
    token: UUID = message["lease_token"]
    return {"id": message["id"], "token": token, "lease": LEASE_SECONDS}


def _one(conn: Connection[Any], statement: Any, given: dict[str, Any]) -> Row | None:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, given).fetchone()


def _kept(row: Row | None, message: Row) -> Row:
    if row is None:
        raise LeaseLost(f"message {message['id']}")
    return row
