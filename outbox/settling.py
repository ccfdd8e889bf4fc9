"""Ending a lease: the message's new state, the evidence and the effect on the books are one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from ledger import faults, wiring
from outbox import backoff, breakers, handlers, transitions
from outbox.leases import LeaseLost, Row
from outbox.outcomes import FINAL, Outcome
from outbox.transitions import Event

ACCEPTED_DAYS = 30  # how long the provider may take to finish what it accepted
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "succeeded": Event.SUCCEED,
        "rejected": Event.REJECT,
        "accepted": Event.ACCEPT,
        "retry": Event.NOT_EXECUTED,
        "uncertain": Event.UNKNOWN,
        "dead": Event.BURY,
        "park": Event.PUT_BACK,
        "cancelled": Event.CANCEL,
    }
)

LEAVE = """
UPDATE public.outbox_message
SET state = %(state)s, claimed_from = NULL, lease_token = NULL, lease_owner = NULL, leased_until = NULL, sending_at = NULL,
    provider_id = coalesce(%(provider_id)s, provider_id), provider_status = coalesce(%(provider_status)s, provider_status),
    refusal = CASE WHEN %(state)s <> 'succeeded' THEN coalesce(%(refusal)s, refusal) END, last_error = %(error)s,
    outcome_source = %(source)s, ever_unknown = ever_unknown OR %(unknown)s, seen = coalesce(%(seen)s, seen),
    compensation_needed = NOT %(final)s AND (compensation_needed OR (%(compensate)s AND first_sent_at IS NOT NULL)),
    attempts = attempts - %(refunded)s, spared = spared + %(spared)s, next_attempt_at = now() + make_interval(secs => %(delay)s),
    key_generation = key_generation + %(new_key)s::integer,
    key_deadline = CASE WHEN %(unsent)s OR %(new_key)s THEN NULL ELSE key_deadline END,
    first_sent_at = CASE WHEN %(unsent)s AND step = 0 THEN NULL WHEN %(state)s = 'succeeded' THEN coalesce(first_sent_at, now())
                         ELSE first_sent_at END,
    give_up_at = CASE WHEN %(state)s = 'accepted' AND claimed_from IS DISTINCT FROM 'accepted'
                      THEN now() + make_interval(days => %(days)s) ELSE give_up_at END,
    finished_at = CASE WHEN %(final)s THEN now() END
WHERE id = %(id)s AND state = ANY(%(sources)s) AND (%(token)s::uuid IS NULL OR lease_token = %(token)s)
  AND (%(state)s <> 'cancelled' OR first_sent_at IS NULL)
RETURNING *
"""
OVERTURN = """
UPDATE public.outbox_message
SET provider_status = %(provider_status)s, refusal = coalesce(%(refusal)s, refusal), seen = coalesce(%(seen)s, seen)
WHERE id = %(id)s AND state = ANY(%(sources)s) AND provider_status IS DISTINCT FROM %(provider_status)s
RETURNING *
"""
RECORD = """
INSERT INTO public.outbox_delivery (started_at, message_id, lease_token, step, outcome, http_status, request_id, provider_id,
    provider_status, replayed, stale, error, duration_ms)
VALUES (clock_timestamp() - make_interval(secs => %(duration_ms)s / 1000.0), %(message)s, %(token)s, %(step)s, %(outcome)s,
    %(http_status)s, %(request_id)s, %(provider_id)s, %(provider_status)s, %(replayed)s, %(stale)s, %(error)s, %(duration_ms)s)
"""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The evidence of one call or look-up."""

    step: str
    outcome: Outcome
    duration_ms: int = 0
    told: str | None = None  # a word for the outcome that is not one of its kinds, such as "absent"


def given_up(message: Row, outcome: Outcome) -> Outcome:
    """Return the outcome, or a dead one: for what may never be repeated, ran out of attempts, or took too long."""
    counted = not breakers.turned_away(outcome)
    used_up = (counted and message["attempts"] >= message["max_attempts"]) or message.get("too_old")
    if outcome.kind == "uncertain" and message["repeat"] == "never":
        return replace(outcome, kind="dead", error=f"{outcome.error or 'no answer'}; it may not be repeated")
    if outcome.kind in ("retry", "uncertain") and used_up:
        return replace(outcome, kind="dead", error=f"gave up: {outcome.error or 'no answer'}")
    if outcome.kind == "accepted" and message.get("claimed_from") == "accepted" and message.get("too_old"):
        return replace(outcome, kind="dead", error=f"not final after {ACCEPTED_DAYS} days")
    return outcome


def settle(
    conn: Connection[Any],
    *,
    message: Row,
    outcome: Outcome,
    source: str,
    delivery: Delivery | None = None,
    event: Event | None = None,
    delay: float = 0.0,
    quiet: bool = False,
) -> Row:
    """End this worker's lease and return the message as it is now. Raise LeaseLost, after recording stale evidence.

    `source` is response, lookup or relay; `delay` is seconds until the next try; `quiet` leaves out the effects, for a
    message whose effects failed. Everything is one transaction.
    """
    outcome = given_up(message, outcome)
    event = Event.BURY if outcome.kind == "dead" else event or EVENTS[outcome.kind]
    with conn.transaction():
        after = _leave(
            conn, message=message, token=message["lease_token"], event=event, outcome=outcome, source=source, delay=delay
        )
        if after is not None:
            record(conn, message=message, delivery=delivery)
            if not quiet:
                _take_effect(conn, message=after, outcome=outcome, changed=after["state"] != message["claimed_from"])
            faults.reach("send.settling", thread=after["thread"])
            return after
    record(conn, message=message, delivery=delivery, stale=True)
    raise LeaseLost(f"message {message['id']}")


def adopt(
    conn: Connection[Any],
    *,
    message: Row,
    outcome: Outcome,
    source: str,
    delivery: Delivery | None = None,
    event: Event | None = None,
) -> Row | None:
    """Take over an outcome that the provider or a person gave, whoever holds the lease, and return the message.

    None when its state does not allow that. The lease is cleared, so that its holder's late answer changes nothing. `event`
    is what happens to the message, if not what the outcome's kind says.
    """
    event, wait = event or EVENTS[outcome.kind], backoff.LOOK_AGAIN if outcome.kind == "accepted" else 0.0
    with conn.transaction():
        after = _leave(conn, message=message, token=None, event=event, outcome=outcome, source=source, delay=wait)
        if after is not None:
            record(conn, message=message, delivery=delivery)
            _take_effect(conn, message=after, outcome=outcome, changed=True)
    return after


def overturn(conn: Connection[Any], *, message: Row, outcome: Outcome, delivery: Delivery | None = None) -> Row | None:
    """Take back in the books what the provider takes back of a success, and put it before a person; return the message.

    The message stays what it was: it did succeed. None when that was known before.
    """
    given = {
        "id": message["id"],
        "sources": transitions.sources(Event.OVERTURN),
        "provider_status": outcome.provider_status,
        "refusal": outcome.refusal,
        "seen": _json(outcome.seen),
    }
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        after = cursor.execute(OVERTURN, given).fetchone()
        if after is not None:
            record(conn, message=message, delivery=delivery)
            speak_for(conn, message=after)
            concern = handlers.find(after["topic"]).take_back(conn, message=after, outcome=outcome)
            was = f"It was carried out, but now the payment provider says: {outcome.provider_status}."
            _ask_person(conn, message=after, concern=concern or was)
    return after


def record(conn: Connection[Any], *, message: Row, delivery: Delivery | None, stale: bool = False) -> None:
    """Keep the evidence of a call; `stale` when its lease was gone as the answer came."""
    if delivery is None:
        return
    outcome = delivery.outcome
    given = {
        "message": message["id"],
        "token": message["lease_token"],
        "step": delivery.step,
        "outcome": delivery.told or outcome.kind,
        "http_status": outcome.http_status,
        "request_id": outcome.request_id,
        "provider_id": outcome.provider_id,
        "provider_status": outcome.provider_status,
        "replayed": outcome.replayed,
        "stale": stale,
        "error": outcome.error,
        "duration_ms": delivery.duration_ms,
    }
    conn.execute(RECORD, given)


def _leave(
    conn: Connection[Any], *, message: Row, token: UUID | None, event: Event, outcome: Outcome, source: str, delay: float
) -> Row | None:
    """Write the new state, or return None when the lease is gone or the state does not allow it."""
    state = transitions.TARGETS[event][1] or message["claimed_from"]
    refused = breakers.turned_away(outcome)
    given = {
        "id": message["id"],
        "token": token,
        "state": state,
        "sources": transitions.sources(event),
        "provider_id": outcome.provider_id,
        "provider_status": outcome.provider_status,
        "refusal": outcome.refusal,
        "error": outcome.error,
        "source": source,
        "unknown": outcome.kind == "uncertain",
        "compensate": outcome.kind == "dead" and message["repeat"] == "never",
        "refunded": int(refused and message.get("claimed_from") != "accepted"),
        "spared": int(refused),
        "delay": delay,
        "unsent": event is Event.NOT_EXECUTED or (refused and not message["ever_unknown"]),
        "new_key": _needs_new_key(message, outcome),
        "days": ACCEPTED_DAYS,
        "final": outcome.kind in FINAL,
        "seen": _json(outcome.seen),
    }
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(LEAVE, given).fetchone()


def _needs_new_key(message: Row, outcome: Outcome) -> bool:
    """Return whether the key's stored answer is an error for good, and a new key can move nothing twice."""
    stuck = outcome.kind == "uncertain" and outcome.replayed
    return stuck and bool(message["steps"][message["step"]]["renewable"])


def _json(value: Mapping[str, Any] | None) -> Jsonb | None:
    return None if value is None else Jsonb(dict(value))


def _take_effect(conn: Connection[Any], *, message: Row, outcome: Outcome, changed: bool) -> None:
    """Apply the domain's effect of a final outcome, and tell whoever asked to be told of a change."""
    speak_for(conn, message=message)
    concern = handlers.settle(conn, message=message, outcome=outcome) if outcome.kind in FINAL else None
    if changed:
        for tell in wiring.plugged_all("BACKSTOP_ON_SETTLED"):
            tell(conn, message=message, outcome=outcome)
    if concern:
        _ask_person(conn, message=message, concern=concern)


def speak_for(conn: Connection[Any], *, message: Row) -> None:
    """Let what follows in this transaction be about the message's customer, and be known as this message's doing."""
    subject = "" if message["subject"] is None else str(message["subject"])
    conn.execute(
        "SELECT set_config('backstop.subject', %s, true), set_config('backstop.message', %s, true)", (subject, str(message["id"]))
    )


def _ask_person(conn: Connection[Any], *, message: Row, concern: str) -> None:
    for tell in wiring.plugged_all("BACKSTOP_ON_CONTRADICTED"):
        tell(conn, message=message, concern=concern)
