"""Asking the provider about a message that this worker holds, and keeping what it said."""

import time
from dataclasses import replace
from typing import Any

from psycopg import Connection
from psycopg_pool import ConnectionPool

from ledger import faults
from outbox import breakers, endings, gateway, leases, lookups, outcomes
from outbox.endings import Delivery
from outbox.leases import Row
from outbox.lookups import Finding
from outbox.outcomes import Outcome

Pool = ConnectionPool[Connection[Any]]


def look_up(pool: Pool, message: Row, *, provider_id: str | None = None) -> Finding:
    """Ask the provider, within the lease, and keep the evidence. `provider_id` overrides the message's own."""

    def get(path: str, params: Any) -> outcomes.Answer:
        with pool.connection() as conn:
            leases.renew(conn, message=message)
        return gateway.get(path, params, account=message["account"], version=message["api_version"])

    started = time.monotonic()
    finding = lookups.find(get, message=message, provider_id=provider_id)
    told = None if finding.kind == "known" else finding.kind
    record(pool, message, Delivery(step="lookup", outcome=finding.outcome, duration_ms=ms(started), told=told))
    message |= heard(pool, message, finding.outcome)
    faults.reach("send.looked_up", thread=message["thread"])
    return finding


SPENT = """
SELECT EXISTS (SELECT FROM public.outbox_delivery
               WHERE message_id = %(id)s AND step = %(step)s AND replayed AND http_status >= 500)
"""


def is_spent(pool: Pool, message: Row) -> bool:
    """Return whether the step's key has answered the same 5xx twice: it always will, even if the effect comes later.

    A step that moves nothing twice has another key by then.
    """
    step = message["steps"][message["step"]]
    if step["renewable"]:
        return False
    with pool.connection() as conn:
        found = conn.execute(SPENT, {"id": message["id"], "step": step["name"]}).fetchone()
    return bool(found and found[0])


def verified(pool: Pool, message: Row, outcome: Outcome) -> Outcome:
    """Return what the provider says about an outcome that must not be believed as it stands."""
    finding = look_up(pool, message, provider_id=outcome.provider_id)
    if finding.kind == "known":
        return finding.outcome
    if finding.kind == "unanswered":
        return replace(outcome, kind="uncertain", error=finding.outcome.error)
    if finding.kind == "unsent" and outcome.kind == "advanced":
        return finding.outcome
    # Nothing of ours is there: a refusal stands, a stored success is contradicted.
    return outcome if outcome.kind in ("rejected", "dead") else replace(outcome, kind="uncertain")


def heard(pool: Pool, message: Row, outcome: Outcome) -> Row:
    """Let the message's destination be parked or opened by what it said, and return the message."""
    if not message["probing"] and not breakers.parks(outcome):
        return message
    with pool.connection() as conn:
        return breakers.heard(conn, message=message, outcome=outcome)


def record(pool: Pool, message: Row, delivery: Delivery) -> None:
    """Keep the evidence of a call."""
    with pool.connection() as conn:
        endings.record(conn, message=message, delivery=delivery)


def ms(started: float) -> int:
    """Return the milliseconds since a time of the monotonic clock."""
    return round((time.monotonic() - started) * 1000)
