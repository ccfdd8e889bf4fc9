"""Taking a message and keeping it: one statement each, on the database's clock, guarded by the lease's token.

A lease is a fresh UUID and a time. Whoever finds its token gone has lost the message and touches it no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection, sql
from psycopg.rows import dict_row

from outbox import backoff, handlers, transitions
from outbox.transitions import Event

Row = dict[str, Any]

LEASE_SECONDS = 120  # far above the provider's time-outs (settings.STRIPE_TIMEOUTS)
KEY_HOURS = 20  # the provider may forget a key after 24


def states(names: Iterable[str]) -> sql.Composable:
    """Return states as text of the statement: as parameters they would keep a generic plan from the partial indexes."""
    return sql.SQL(", ").join(map(sql.Literal, names))


# What is parked or has a rate is locked: one message tries a parked destination, and one claim empties the bucket. A time that
# is further away than any pause was written by a clock that was wrong.
CLAIM = sql.SQL("""
WITH gates AS MATERIALIZED (
    SELECT name, rate, parked_until IS NOT NULL AS probing,
        parked_until IS NULL OR parked_until NOT BETWEEN now() AND now() + make_interval(secs => %(longest)s) AS passable,
        CASE WHEN spent_until BETWEEN now() AND now() + (burst + 1) * (interval '1 min' / rate) THEN spent_until
             ELSE now() END AS spent, burst
    FROM public.outbox_destination WHERE name = ANY(%(destinations)s) AND (parked_until IS NOT NULL OR rate IS NOT NULL)
    FOR UPDATE SKIP LOCKED
), open AS (
    SELECT d.name, d.room, false AS probing FROM unnest(%(destinations)s::text[], %(rooms)s::bigint[]) AS d (name, room)
    WHERE NOT EXISTS (SELECT FROM public.outbox_destination o
                      WHERE o.name = d.name AND (o.parked_until IS NOT NULL OR o.rate IS NOT NULL))
    UNION ALL
    SELECT d.name, least(d.room, CASE WHEN probing THEN 1 END,
                         CASE WHEN rate > 0 THEN greatest(0, floor(burst - extract(epoch FROM spent - now()) * rate / 60)) END
                        )::bigint, probing
    FROM gates JOIN unnest(%(destinations)s::text[], %(rooms)s::bigint[]) AS d (name, room) USING (name) WHERE passable
), due AS MATERIALIZED (  -- without it a plan may claim more rows than it should
    SELECT m.* FROM open CROSS JOIN LATERAL (
        SELECT head.id, head.state, head.destination, head.next_attempt_at, open.probing FROM (
            SELECT m.id, m.state, m.destination, m.aggregate, m.next_attempt_at FROM public.outbox_message m
            WHERE m.destination = open.name AND m.state IN ({claimable}) AND NOT m.blocked AND m.next_attempt_at <= now()
            ORDER BY m.next_attempt_at, m.id FOR UPDATE OF m SKIP LOCKED
        ) AS head  -- taken from one by one, so that what follows is asked of few, however many are due
        WHERE head.id = (SELECT first.id FROM public.outbox_message first
                         WHERE first.aggregate = head.aggregate AND first.state IN ({unfinished}) ORDER BY first.id LIMIT 1)
          AND head.id NOT IN (SELECT r.message_id FROM public.outbox_request r
                              WHERE r.message_id IS NOT NULL AND r.carried_out_at IS NULL)
        LIMIT open.room
    ) AS m ORDER BY m.next_attempt_at, m.id LIMIT %(limit)s
), passed AS (
    UPDATE public.outbox_destination o
    SET parked_until = CASE WHEN o.parked_until IS NOT NULL THEN now() + make_interval(secs => %(lease)s) END,
        spent_until = coalesce(gates.spent + taken.messages * (interval '1 min' / o.rate), o.spent_until)
    FROM gates JOIN (SELECT destination, count(*) AS messages FROM due GROUP BY destination) AS taken
        ON taken.destination = gates.name
    WHERE o.name = gates.name
)
UPDATE public.outbox_message m
SET state = 'leased', claimed_from = due.state, lease_token = pg_catalog.gen_random_uuid(), lease_owner = %(owner)s,
    leased_until = now() + make_interval(secs => %(lease)s), sending_at = NULL,
    attempts = m.attempts + (due.state <> 'accepted')::integer  -- counted now: a message that kills its worker runs out too
FROM due WHERE m.id = due.id
RETURNING m.*, now() >= m.give_up_at AS too_old, now() >= m.key_deadline AS key_expired, due.probing
""").format(claimable=states(transitions.sources(Event.CLAIM)), unfinished=states(transitions.UNFINISHED))
BEGIN_SEND = """
UPDATE public.outbox_message m
SET sending_at = now(), sends = sends + 1, first_sent_at = coalesce(first_sent_at, now()),
    key_deadline = coalesce(key_deadline, now() + make_interval(hours => %(key_hours)s)),
    leased_until = now() + make_interval(secs => %(lease)s)
FROM unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) AS held (id, token)
WHERE m.id = held.id AND m.state = ANY(%(sources)s) AND m.lease_token = held.token AND m.leased_until > now()
  AND (m.key_deadline IS NULL OR m.key_deadline > now())
RETURNING m.id, m.sending_at, m.first_sent_at, m.key_deadline, m.sends
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
# A lease that ends later than any lease could was given by a clock that was wrong.
RESCUE = """
WITH lost AS MATERIALIZED (
    SELECT id, lease_token, coalesce(steps -> step ->> 'name', 'unknown') AS step, sending_at FROM public.outbox_message
    WHERE state = 'leased' AND (leased_until < now() OR leased_until > now() + 2 * make_interval(secs => %(lease)s))
    ORDER BY leased_until LIMIT 200 FOR UPDATE SKIP LOCKED
), back AS (
    UPDATE public.outbox_message m
    SET state = CASE WHEN m.sending_at IS NULL THEN m.claimed_from ELSE 'uncertain' END,
        ever_unknown = m.ever_unknown OR m.sending_at IS NOT NULL,
        attempts = m.attempts - (m.sending_at IS NULL AND m.claimed_from <> 'accepted')::integer,
        spared = m.spared + (m.sending_at IS NULL)::integer,
        next_attempt_at = now() + CASE WHEN m.sending_at IS NULL THEN least(m.spared, %(longest)s) ELSE 0 END
                                  * random() * interval '1 s',
        claimed_from = NULL, lease_token = NULL, lease_owner = NULL, leased_until = NULL, sending_at = NULL
    FROM lost WHERE m.id = lost.id AND m.lease_token = lost.lease_token
    RETURNING m.id, m.state
), evidence AS (
    INSERT INTO public.outbox_delivery (message_id, lease_token, step, outcome, error, duration_ms)
    SELECT id, lease_token, step, 'uncertain', 'the worker was lost', 0 FROM lost WHERE sending_at IS NOT NULL
)
SELECT id, state FROM back
"""
# Whoever finishes a message lets the next one go. One that was written at the same moment may have been missed: only the
# first that waits of each aggregate is looked at, however many there are.
UNBLOCK = sql.SQL("""
WITH RECURSIVE head AS (
    (SELECT aggregate, id FROM public.outbox_message WHERE blocked AND state = 'ready' ORDER BY aggregate, id LIMIT 1)
    UNION ALL
    SELECT following.aggregate, following.id FROM head CROSS JOIN LATERAL (
        SELECT m.aggregate, m.id FROM public.outbox_message m
        WHERE m.blocked AND m.state = 'ready' AND m.aggregate > head.aggregate ORDER BY m.aggregate, m.id LIMIT 1
    ) AS following
)
UPDATE public.outbox_message m SET blocked = false FROM head
WHERE m.id = head.id AND m.blocked AND m.state = 'ready'
  AND NOT EXISTS (SELECT FROM public.outbox_message older
                  WHERE older.aggregate = m.aggregate AND older.id < m.id AND older.state IN ({unfinished}))
RETURNING m.id
""").format(unfinished=states(transitions.UNFINISHED))


class LeaseLost(Exception):
    """Somebody else has the message by now, or nobody: this worker may not touch it."""


def claim(conn: Connection[Any], *, owner: str) -> Row | None:
    """Lease the message that is due longest and return it, or None."""
    return next(iter(claim_some(conn, owner=owner, limit=1)), None)


def claim_some(conn: Connection[Any], *, owner: str, limit: int, rooms: Mapping[str, int] | None = None) -> list[Row]:
    """Lease the messages that are due longest, at most `limit`, and return them in that order.

    `rooms` says how many at most of a destination.

    Skipped: what an older unfinished message of its aggregate keeps waiting, what a person's request is open for, what its
    destination has no room for just now. `probing` in a row: it finds out whether a parked destination is open again.
    """
    given: dict[str, Any] = {"owner": owner, "lease": LEASE_SECONDS, "limit": limit, "longest": backoff.CAP}
    names = handlers.destinations()
    given |= {"destinations": names, "rooms": [max(0, (rooms or {}).get(name, limit)) for name in names]}
    with conn.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(CLAIM, given).fetchall()
    return sorted(found, key=lambda message: (message["next_attempt_at"], message["id"]))


def begin_send(conn: Connection[Any], *, message: Row) -> Row:
    """Write, before a call, that it is about to leave; renews the lease. Return the message as it is now. Raise LeaseLost.

    A key that is too old to be sent counts as a lost lease: the caller renews or buries before it comes here.
    """
    begun = begin_sends(conn, messages=[message])
    if not begun:
        raise LeaseLost(f"message {message['id']}")
    return begun[0]


def begin_sends(conn: Connection[Any], *, messages: Sequence[Row]) -> list[Row]:
    """Write the same ahead for several messages in one commit; those whose lease is lost are missing in what it returns."""
    given = {
        "ids": [message["id"] for message in messages],
        "tokens": [message["lease_token"] for message in messages],
        "sources": transitions.sources(Event.SEND),
        "lease": LEASE_SECONDS,
        "key_hours": KEY_HOURS,
    }
    with conn.cursor(row_factory=dict_row) as cursor:
        begun = {row["id"]: row for row in cursor.execute(BEGIN_SEND, given).fetchall()}
    return [message | begun[message["id"]] for message in messages if message["id"] in begun]


def renew(conn: Connection[Any], *, message: Row) -> None:
    """Prolong the lease before a look-up. Raise LeaseLost."""
    _kept(conn, RENEW, _held(message), message)


def renew_key(conn: Connection[Any], *, message: Row) -> Row:
    """Give the current step its next key, for a step whose repeat can never move money twice. Raise LeaseLost."""
    return _kept(conn, RENEW_KEY, _held(message), message)


def advance(conn: Connection[Any], *, message: Row, step: int, provider_id: str, provider_status: str | None) -> Row:
    """Store what the provider calls the object, and go on to `step` within the lease. Raise LeaseLost."""
    given = _held(message) | {
        "sources": transitions.sources(Event.ADVANCE),
        "step": step,
        "provider_id": provider_id,
        "provider_status": provider_status,
    }
    return _kept(conn, ADVANCE, given, message)


def rescue(conn: Connection[Any]) -> list[tuple[int, str]]:
    """Take messages from workers that are gone and return ids and states: back where they were, or uncertain if sent.

    What never left has used up no attempt; the next try of one that was lost again and again waits longer and longer.
    """
    given = {"lease": LEASE_SECONDS, "longest": backoff.CAP}
    return [(row[0], row[1]) for row in conn.execute(RESCUE, given).fetchall()]


def unblock(conn: Connection[Any]) -> list[int]:
    """Let go what waits although nothing is in its way any more, and return the ids."""
    return [row[0] for row in conn.execute(UNBLOCK).fetchall()]


def _held(message: Row) -> dict[str, Any]:
    token: UUID = message["lease_token"]
    return {"id": message["id"], "token": token, "lease": LEASE_SECONDS}


def _kept(conn: Connection[Any], statement: str, given: dict[str, Any], message: Row) -> Row:
    """Return the message with what the statement returns of it; raise LeaseLost when it found none."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(statement, given).fetchone()
    if row is None:
        raise LeaseLost(f"message {message['id']}")
    return message | row
