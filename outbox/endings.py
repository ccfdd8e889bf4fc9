"""Writing how tries at messages ended: new states and the evidence, of one message or of several, in one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox import breakers, transitions
from outbox.leases import Row
from outbox.outcomes import FINAL, Outcome
from outbox.transitions import Event

ACCEPTED_DAYS = 30  # how long the provider may take to finish what it accepted

# What a delivery's row holds of the evidence; `stale` is only written where nothing else is.
EVIDENCE = """step text, outcome text, http_status integer, request_id text, provider_id text, provider_status text,
    replayed boolean, error text, duration_ms integer, lease_token uuid"""
DELIVERY = """(started_at, message_id, lease_token, step, outcome, http_status, request_id, provider_id, provider_status,
    replayed, stale, error, duration_ms)"""
WRITE = f"""
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(endings)s) AS given (
        id bigint, token uuid, state text, sources text[], provider_id text, provider_status text, refusal text, error text,
        source text, unknown boolean, seen jsonb, final boolean, compensate boolean, refunded integer, spared integer,
        delay double precision, new_key boolean, unsent boolean, evidence jsonb)
), after AS (
    UPDATE public.outbox_message m
    SET state = given.state, claimed_from = NULL, lease_token = NULL, lease_owner = NULL, leased_until = NULL, sending_at = NULL,
        provider_id = coalesce(given.provider_id, m.provider_id),
        provider_status = coalesce(given.provider_status, m.provider_status),
        refusal = CASE WHEN given.state <> 'succeeded' THEN coalesce(given.refusal, m.refusal) END, last_error = given.error,
        outcome_source = given.source, ever_unknown = m.ever_unknown OR given.unknown, seen = coalesce(given.seen, m.seen),
        compensation_needed = NOT given.final
            AND (m.compensation_needed OR (given.compensate AND m.first_sent_at IS NOT NULL)),
        attempts = m.attempts - given.refunded, spared = m.spared + given.spared,
        next_attempt_at = now() + make_interval(secs => given.delay),
        key_generation = m.key_generation + given.new_key::integer,
        key_deadline = CASE WHEN given.unsent OR given.new_key THEN NULL ELSE m.key_deadline END,
        first_sent_at = CASE WHEN given.unsent AND m.step = 0 THEN NULL
                             WHEN given.state = 'succeeded' THEN coalesce(m.first_sent_at, now()) ELSE m.first_sent_at END,
        give_up_at = CASE WHEN given.state = 'accepted' AND m.claimed_from IS DISTINCT FROM 'accepted'
                          THEN now() + make_interval(days => {ACCEPTED_DAYS}) ELSE m.give_up_at END,
        finished_at = CASE WHEN given.final THEN now() END
    FROM given
    WHERE m.id = given.id AND m.state = ANY(given.sources) AND (given.token IS NULL OR m.lease_token = given.token)
      AND (given.state <> 'cancelled' OR m.first_sent_at IS NULL)
    RETURNING m.*
), kept AS (
    INSERT INTO public.outbox_delivery {DELIVERY}
    SELECT clock_timestamp() - make_interval(secs => one.duration_ms / 1000.0), given.id, one.lease_token, one.step, one.outcome,
        one.http_status, one.request_id, one.provider_id, one.provider_status, one.replayed, false, one.error, one.duration_ms
    FROM after JOIN given USING (id) CROSS JOIN LATERAL jsonb_to_record(given.evidence) AS one ({EVIDENCE})
    WHERE given.evidence IS NOT NULL
)
SELECT * FROM after
"""  # noqa: S608
RECORD = f"""
INSERT INTO public.outbox_delivery {DELIVERY}
SELECT clock_timestamp() - make_interval(secs => one.duration_ms / 1000.0), %(message)s, one.lease_token, one.step, one.outcome,
    one.http_status, one.request_id, one.provider_id, one.provider_status, one.replayed, %(stale)s, one.error, one.duration_ms
FROM jsonb_to_record(%(evidence)s) AS one ({EVIDENCE})
"""  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The evidence of one call or look-up."""

    step: str
    outcome: Outcome
    duration_ms: int = 0
    told: str | None = None  # a word for the outcome that is not one of its kinds, such as "absent"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a try at a message ended. `source` is response, lookup, webhook, person or relay; `delay` is seconds until the next.

    `token` is the lease's, or None for what is true whoever holds it.
    """

    message: Row
    token: UUID | None
    event: Event
    outcome: Outcome
    source: str
    delay: float = 0.0
    delivery: Delivery | None = None


def write(conn: Connection[Any], endings: Sequence[Ending]) -> dict[int, Row]:
    """Write the new states and the evidence, and return the messages as they are now, by id.

    One is missing when its lease is gone, or its state does not allow the event: nothing of it was written.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(WRITE, {"endings": Jsonb([_given(ending) for ending in endings])}).fetchall()
    return {row["id"]: row for row in found}


def record(conn: Connection[Any], *, message: Row, delivery: Delivery | None, stale: bool = False) -> None:
    """Keep the evidence of a call; `stale` when its lease was gone as the answer came."""
    if delivery is not None:
        evidence = Jsonb(_evidence(message, delivery))
        conn.execute(RECORD, {"message": message["id"], "stale": stale, "evidence": evidence})


def _given(ending: Ending) -> dict[str, Any]:
    message, outcome, event = ending.message, ending.outcome, ending.event
    refused = breakers.turned_away(outcome)  # it was the destination that refused, not this message: no attempt is used up
    return {
        "id": message["id"],
        "token": None if ending.token is None else str(ending.token),
        "state": transitions.TARGETS[event][1] or message["claimed_from"],
        "sources": transitions.sources(event),
        "provider_id": outcome.provider_id,
        "provider_status": outcome.provider_status,
        "refusal": outcome.refusal,
        "error": outcome.error,
        "source": ending.source,
        "unknown": outcome.kind == "uncertain",
        "seen": None if outcome.seen is None else dict(outcome.seen),
        "final": outcome.kind in FINAL,
        "compensate": outcome.kind == "dead" and message["repeat"] == "never",
        "refunded": int(refused and message.get("claimed_from") != "accepted"),
        "spared": int(refused),
        "delay": ending.delay,
        "new_key": _needs_new_key(message, outcome),
        "unsent": event is Event.NOT_EXECUTED or (refused and not message["ever_unknown"]),
        "evidence": ending.delivery and _evidence(message, ending.delivery),
    }


def _evidence(message: Row, delivery: Delivery) -> Mapping[str, Any]:
    outcome = delivery.outcome
    return {
        "lease_token": message["lease_token"] and str(message["lease_token"]),
        "step": delivery.step,
        "outcome": delivery.told or outcome.kind,
        "http_status": outcome.http_status,
        "request_id": outcome.request_id,
        "provider_id": outcome.provider_id,
        "provider_status": outcome.provider_status,
        "replayed": outcome.replayed,
        "error": outcome.error,
        "duration_ms": delivery.duration_ms,
    }


def _needs_new_key(message: Row, outcome: Outcome) -> bool:
    """Return whether the key's stored answer is an error for good, and a new key can move nothing twice."""
    stuck = outcome.kind == "uncertain" and outcome.replayed
    return stuck and bool(message["steps"][message["step"]]["renewable"])
