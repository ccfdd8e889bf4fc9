"""Delivering: claim → write ahead → call → settle. No transaction is open during a call."""

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import structlog
from psycopg import Connection
from psycopg_pool import ConnectionPool

from ledger import faults
from outbox import backoff, destinations, gateway, handlers, leases, lookups, outcomes, settling
from outbox.leases import LeaseLost, Row
from outbox.lookups import Finding
from outbox.outcomes import Outcome
from outbox.settling import Delivery
from outbox.transitions import Event

Pool = ConnectionPool[Connection[Any]]
log = structlog.get_logger()


def owner() -> str:
    """Return who holds a lease, for people who read the row."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


def drain(pool: Pool, *, go_on: Callable[[], bool], wake: Callable[[], object]) -> bool:
    """Deliver until nothing is due, or `go_on` says no, and return whether something may be left.

    `wake` is called once, as soon as there is something to deliver: another worker may look for more meanwhile.
    """
    woken = False
    while go_on():
        with pool.connection() as conn:
            message = leases.claim(conn, owner=owner())
        if message is None:
            return False
        faults.reach("send.claimed", thread=message["thread"])
        if not woken:
            wake()
            woken = True
        deliver(pool, message)
    return True


def deliver(pool: Pool, message: Row) -> None:
    """Carry a leased message as far as it goes now; losing the lease on the way ends it here.

    A message that nobody foresaw must not keep the others waiting: its lease runs out, and so do its attempts.
    """
    with structlog.contextvars.bound_contextvars(message=message["id"], topic=message["topic"]):
        try:
            _carry(pool, message)
        except LeaseLost:
            log.warning("outbox.lease.lost", token=str(message["lease_token"]))
        except psycopg.OperationalError:
            raise
        except Exception:
            log.exception("outbox.message.broke")


def _carry(pool: Pool, message: Row) -> None:
    going: Row | None = message
    if message["attempts"] > message["max_attempts"]:  # it was claimed again and again and never settled
        _settle(pool, message, Outcome(kind="dead", error="every attempt was lost"), source="relay")
        return
    if not _is_wanted(pool, message):
        return
    if message["claimed_from"] != "ready" and message["repeat"] != "harmless":
        going = _look_first(pool, message)
    while going is not None:
        going = _send(pool, going)


def _is_wanted(pool: Pool, message: Row) -> bool:
    """Return whether the message is to leave; one that nobody wants any more, and that never left, is withdrawn here."""
    with pool.connection() as conn:
        wanted = message["first_sent_at"] is not None or handlers.find(message["topic"]).wanted(conn, message=message)
    if not wanted:
        _settle(pool, message, Outcome(kind="cancelled"), source="relay", event=Event.SKIP)
    return wanted


def _look_first(pool: Pool, message: Row) -> Row | None:
    """Find out what became of an earlier try; return the message if its step is still to be sent."""
    if message["repeat"] == "never":
        _settle(pool, message, Outcome(kind="uncertain", error="no answer"), source="relay")
        return None
    finding = _look_up(pool, message)
    if finding.kind == "unsent":
        return _go_on(pool, message, finding.outcome, step=len(message["steps"]) - 1)
    if finding.kind == "absent" and message["claimed_from"] == "uncertain":
        return message
    if finding.kind == "absent":
        finding = Finding(kind="known", outcome=replace(finding.outcome, kind="dead", error="it is gone from the provider"))
    event = Event.PUT_BACK if finding.kind == "unanswered" else None
    _settle(pool, message, finding.outcome, source="lookup", event=event)
    return None


def _send(pool: Pool, message: Row) -> Row | None:
    """Send the current step; return the message if another one follows now."""
    sendable = _with_a_key(pool, message)
    if sendable is None:
        return None
    with pool.connection() as conn:
        message = leases.begin_send(conn, message=sendable)
    faults.reach("send.begun", thread=message["thread"])
    step = message["steps"][message["step"]]
    started = time.monotonic()
    outcome = destinations.send(message, key=sending_key(message))
    delivery: Delivery | None = Delivery(step=step["name"], outcome=outcome, duration_ms=_ms(started))
    if outcome.verify:
        _record(pool, message, delivery)
        outcome, delivery = _verified(pool, message, outcome), None
    if outcome.kind == "advanced":
        return _go_on(pool, message, outcome, step=message["step"] + 1, delivery=delivery)
    _settle(pool, message, outcome, source="lookup" if delivery is None else "response", delivery=delivery)
    return None


def sending_key(message: Row) -> str:
    """Return the idempotency key of the current step: the frozen one, or its later generation."""
    key: str = message["steps"][message["step"]]["key"]
    return key if message["key_generation"] == 1 else f"{key}:{message['key_generation']}"


def _with_a_key(pool: Pool, message: Row) -> Row | None:
    """Return the message with a key that may be sent. A key that is too old makes any repeat a new request."""
    if not message["key_expired"]:
        return message
    if message["steps"][message["step"]]["renewable"]:
        with pool.connection() as conn:
            return leases.renew_key(conn, message=message)
    old = Outcome(kind="dead", error=f"nothing was found, and its key is older than {leases.KEY_HOURS} hours")
    _settle(pool, message, old, source="relay")
    return None


def _verified(pool: Pool, message: Row, outcome: Outcome) -> Outcome:
    """Return what the provider says about an outcome that must not be believed as it stands."""
    finding = _look_up(pool, message, provider_id=outcome.provider_id)
    if finding.kind == "known":
        return finding.outcome
    if finding.kind == "unanswered":
        return replace(outcome, kind="uncertain", error=finding.outcome.error)
    if finding.kind == "unsent" and outcome.kind == "advanced":
        return finding.outcome
    # Nothing of ours is there: a refusal stands, a stored success is contradicted.
    return outcome if outcome.kind in ("rejected", "dead") else replace(outcome, kind="uncertain")


def _look_up(pool: Pool, message: Row, *, provider_id: str | None = None) -> Finding:
    """Ask the provider, within the lease, and keep the evidence."""

    def get(path: str, params: Any) -> outcomes.Answer:
        with pool.connection() as conn:
            leases.renew(conn, message=message)
        return gateway.get(path, params, account=message["account"], version=message["api_version"])

    started = time.monotonic()
    finding = lookups.find(get, message=message, provider_id=provider_id)
    told = None if finding.kind == "known" else finding.kind
    _record(pool, message, Delivery(step="lookup", outcome=finding.outcome, duration_ms=_ms(started), told=told))
    return finding


def _go_on(pool: Pool, message: Row, outcome: Outcome, *, step: int, delivery: Delivery | None = None) -> Row:
    """Store the provider's id before the next step is sent."""
    assert outcome.provider_id is not None  # judge_object gives no outcome without one
    with pool.connection() as conn, conn.transaction():
        row = leases.advance(
            conn, message=message, step=step, provider_id=outcome.provider_id, provider_status=outcome.provider_status
        )
        settling.record(conn, message=message, delivery=delivery)
    faults.reach("send.advanced", thread=message["thread"])
    return row | {"too_old": message.get("too_old")}


def _record(pool: Pool, message: Row, delivery: Delivery | None) -> None:
    with pool.connection() as conn:
        settling.record(conn, message=message, delivery=delivery)


def _settle(
    pool: Pool, message: Row, outcome: Outcome, *, source: str, delivery: Delivery | None = None, event: Event | None = None
) -> None:
    """Settle; if the effect on the books fails, keep what is known and let a later attempt, or a person, settle it."""
    wait = _wait(message, outcome)
    with pool.connection() as conn:
        try:
            after = settling.settle(
                conn, message=message, outcome=outcome, source=source, delivery=delivery, event=event, delay=wait
            )
        except (LeaseLost, psycopg.OperationalError):
            raise  # without the database nothing can be written: the lease runs out, a look-up follows
        except Exception as error:
            log.exception("outbox.message.unsettled", outcome=outcome.kind)
            after = _shelve(conn, message, outcome, error, delivery=delivery)
    faults.reach("send.settled", thread=message["thread"])
    log.info("outbox.message.settled", state=after["state"], outcome=outcome.kind, source=source, error=outcome.error)


def _shelve(conn: Connection[Any], message: Row, outcome: Outcome, error: Exception, *, delivery: Delivery | None) -> Row:
    """Put a message whose effect failed aside: looked up again later, or dead, once its attempts are used up."""
    unsettled = replace(outcome, kind="uncertain", error=f"settling failed: {type(error).__name__}", replayed=False)
    wait = _wait(message, unsettled)
    if settling.given_up(message, unsettled).kind == "dead":
        try:  # a person is told, if telling is not what failed
            return settling.settle(conn, message=message, outcome=unsettled, source="relay", delivery=delivery)
        except (LeaseLost, psycopg.OperationalError):
            raise
        except Exception:
            log.exception("outbox.message.untold")
    return settling.settle(conn, message=message, outcome=unsettled, source="relay", delivery=delivery, delay=wait, quiet=True)


def _wait(message: Row, outcome: Outcome) -> float:
    """Return the seconds until the next try."""
    if outcome.kind == "accepted":
        return backoff.LOOK_AGAIN
    if outcome.kind == "park":
        return backoff.PARKED
    return backoff.delay(attempt=message["attempts"], jitter=random.random(), floor=outcome.retry_after)  # noqa: S311


def _ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
