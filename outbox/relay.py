"""Delivering: claim → write ahead → call → settle. No transaction is open during a call."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from psycopg import Connection
from psycopg_pool import ConnectionPool

from ledger import faults
from outbox import destinations, endings, finishing, handlers, inquiries, leases
from outbox.endings import Delivery, Ending
from outbox.finishing import ending
from outbox.leases import Row
from outbox.lookups import Finding
from outbox.outcomes import Outcome
from outbox.transitions import Event

Pool = ConnectionPool[Connection[Any]]
Finish = Callable[[Pool, Ending], None]


def owner() -> str:
    """Return who holds a lease, for people who read the row."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


def drain(pool: Pool, *, go_on: Callable[[], bool], wake: Callable[[], object]) -> bool:
    """Deliver one message after the other until nothing is due, or `go_on` says no; return whether something may be left.

    `wake` is called once, as soon as there is something to deliver. A worker delivers several at once (outbox/crews.py).
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


def take(pool: Pool, *, rooms: Mapping[str, int]) -> list[Row]:
    """Claim at most so many messages of each destination, write ahead in one commit what can leave as it is; return them all."""
    with pool.connection() as conn:
        claimed = leases.claim_some(conn, owner=owner(), limit=sum(rooms.values()), rooms=rooms)
        for message in claimed:
            faults.reach("send.claimed", thread=message["thread"])
        leaving = [message for message in claimed if _leaves_as_it_is(message)]
        begun = leases.begin_sends(conn, messages=leaving) if leaving else []
    others = [message for message in claimed if not _leaves_as_it_is(message)]
    return begun + others


def deliver(pool: Pool, message: Row, *, finish: Finish = finishing.finish) -> None:
    """Carry a leased message as far as it goes now; losing the lease on the way ends it here.

    A message that nobody foresaw must not keep the others waiting: its lease runs out, and so do its attempts.
    """
    with finishing.guarded(message):
        finish(pool, _carried(pool, message))


def _leaves_as_it_is(message: Row) -> bool:
    """Return whether nothing has to be asked, of the books or of the provider, before the message's step is sent."""
    untried = message["claimed_from"] == "ready" and not message["key_expired"] and not _is_lost(message)
    return untried and (message["first_sent_at"] is not None or handlers.asks_nothing(message["topic"]))


def _is_lost(message: Row) -> bool:
    """Return whether it was claimed again and again and never settled: such a message may end its workers."""
    spared_long = message["too_old"] and message["spared"] > message["max_attempts"]
    return bool(message["attempts"] > message["max_attempts"] or spared_long)


def _carried(pool: Pool, message: Row) -> Ending:
    """Send step after step, and return how it ended."""
    going: Row | Ending = message if message["sending_at"] else _prepared(pool, message)
    while not isinstance(going, Ending):
        going = _sent(pool, going)
    return going


def _prepared(pool: Pool, message: Row) -> Row | Ending:
    """Return the message if its step is to be sent, after asking whoever has to be asked."""
    if _is_lost(message):
        return ending(message, Outcome(kind="dead", error="every attempt was lost"), source="relay")
    if not _is_wanted(pool, message):
        return ending(message, Outcome(kind="cancelled"), source="relay", event=Event.SKIP)
    if message["claimed_from"] != "ready" and message["repeat"] != "harmless":
        return _looked_up(pool, message)
    return message


def _is_wanted(pool: Pool, message: Row) -> bool:
    """Return whether the message is to leave: one that nobody wants any more, and that never left, is not."""
    if message["first_sent_at"] is not None:
        return True
    with pool.connection() as conn:
        return handlers.find(message["topic"]).wanted(conn, message=message)


def _looked_up(pool: Pool, message: Row) -> Row | Ending:
    """Find out what became of an earlier try; return the message if its step is still to be sent."""
    if message["repeat"] == "never":
        return ending(message, Outcome(kind="uncertain", error="no answer"), source="relay")
    finding = inquiries.look_up(pool, message)
    if finding.kind == "unsent":
        return _advanced(pool, message, finding.outcome, step=len(message["steps"]) - 1)
    if finding.kind == "absent" and message["claimed_from"] == "uncertain":
        return message if message["key_expired"] or not inquiries.is_spent(pool, message) else _put_off(message)
    if finding.kind == "absent":
        finding = Finding(kind="known", outcome=replace(finding.outcome, kind="dead", error="it is gone from the provider"))
    event = Event.PUT_BACK if finding.kind == "unanswered" else None
    return ending(message, finding.outcome, source="lookup", event=event)


def _put_off(message: Row) -> Ending:
    """Return the end of a try that sends nothing: its key would only repeat an error, and the effect may still show."""
    wait = Outcome(kind="uncertain", error="its key repeats an error; nothing is there yet")
    return ending(message, wait, source="lookup", event=Event.PUT_BACK)


def _sent(pool: Pool, message: Row) -> Row | Ending:
    """Send the current step; return the message if another one follows now."""
    if message["sending_at"] is None:
        sendable = _with_a_key(pool, message)
        if isinstance(sendable, Ending):
            return sendable
        with pool.connection() as conn:
            message = leases.begin_send(conn, message=sendable)
    faults.reach("send.begun", thread=message["thread"])
    step = message["steps"][message["step"]]
    started = time.monotonic()
    outcome = destinations.send(message, key=sending_key(message))
    made = Delivery(step=step["name"], outcome=outcome, duration_ms=inquiries.ms(started))
    delivery: Delivery | None = made
    message = inquiries.heard(pool, message, outcome)
    if outcome.verify:
        inquiries.record(pool, message, made)
        outcome, delivery = inquiries.verified(pool, message, outcome), None
    if outcome.kind == "advanced":
        return _advanced(pool, message, outcome, step=message["step"] + 1, delivery=delivery)
    return ending(message, outcome, source="lookup" if delivery is None else "response", delivery=delivery)


def sending_key(message: Row) -> str:
    """Return the idempotency key of the current step: the frozen one, or its later generation."""
    key: str = message["steps"][message["step"]]["key"]
    return key if message["key_generation"] == 1 else f"{key}:{message['key_generation']}"


def _with_a_key(pool: Pool, message: Row) -> Row | Ending:
    """Return the message with a key that may be sent. A key that is too old makes any repeat a new request."""
    if not message["key_expired"]:
        return message
    if message["steps"][message["step"]]["renewable"]:
        with pool.connection() as conn:
            return leases.renew_key(conn, message=message)
    old = Outcome(kind="dead", error=f"nothing was found, and its key is older than {leases.KEY_HOURS} hours")
    return ending(message, old, source="relay")


def _advanced(pool: Pool, message: Row, outcome: Outcome, *, step: int, delivery: Delivery | None = None) -> Row:
    """Store the provider's id before the next step is sent."""
    assert outcome.provider_id is not None  # judge_object gives no outcome without one
    with pool.connection() as conn, conn.transaction():
        row = leases.advance(
            conn, message=message, step=step, provider_id=outcome.provider_id, provider_status=outcome.provider_status
        )
        endings.record(conn, message=message, delivery=delivery)
    faults.reach("send.advanced", thread=message["thread"])
    return row
