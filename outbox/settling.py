"""Ending a lease: the message's new state, the evidence and the effect on the books are one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from ledger import faults, wiring
from outbox import backoff, breakers, endings, handlers, transitions
from outbox.endings import Delivery, Ending
from outbox.leases import LeaseLost, Row
from outbox.outcomes import FINAL, Outcome
from outbox.transitions import Event

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

OVERTURN = """
UPDATE public.outbox_message
SET provider_status = %(provider_status)s, refusal = coalesce(%(refusal)s, refusal), seen = coalesce(%(seen)s, seen)
WHERE id = %(id)s AND state = ANY(%(sources)s) AND provider_status IS DISTINCT FROM %(provider_status)s
RETURNING *
"""


def given_up(message: Row, outcome: Outcome) -> Outcome:
    """Return the outcome, or a dead one: for what may never be repeated, ran out of attempts, or took too long."""
    counted = not breakers.turned_away(outcome)
    used_up = (counted and message["attempts"] >= message["max_attempts"]) or message.get("too_old")
    if outcome.kind == "uncertain" and message["repeat"] == "never":
        return replace(outcome, kind="dead", error=f"{outcome.error or 'no answer'}; it may not be repeated")
    if outcome.kind in ("retry", "uncertain") and used_up:
        return replace(outcome, kind="dead", error=f"gave up: {outcome.error or 'no answer'}")
    if outcome.kind == "accepted" and message.get("claimed_from") == "accepted" and message.get("too_old"):
        return replace(outcome, kind="dead", error=f"not final after {endings.ACCEPTED_DAYS} days")
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
    ending = ended(message=message, outcome=outcome, source=source, delivery=delivery, event=event, delay=delay)
    after = settle_all(conn, [ending], quiet=quiet)
    if message["id"] not in after:
        raise LeaseLost(f"message {message['id']}")
    return after[message["id"]]


def ended(
    *,
    message: Row,
    outcome: Outcome,
    source: str,
    delivery: Delivery | None = None,
    event: Event | None = None,
    delay: float = 0.0,
) -> Ending:
    """Return how a try of this worker's ended, a dead one when nothing more is to be tried."""
    outcome = given_up(message, outcome)
    event = Event.BURY if outcome.kind == "dead" else event or EVENTS[outcome.kind]
    return Ending(
        message=message, token=message["lease_token"], event=event, outcome=outcome, source=source, delay=delay, delivery=delivery
    )


def settle_all(conn: Connection[Any], tries: Sequence[Ending], *, quiet: bool = False) -> dict[int, Row]:
    """End this worker's leases in one transaction, and return the messages as they are now, by id.

    One whose lease is gone is missing: its stale evidence is recorded afterwards. Customers come one after the other, in
    their order, so that two workers never wait for each other; first what is about none, before anybody is spoken for.
    """
    with conn.transaction():
        after = endings.write(conn, tries)
        for ending in sorted(tries, key=_turn):
            row = after.get(ending.message["id"])
            if row is not None and not quiet:
                changed = row["state"] != ending.message["claimed_from"]
                _take_effect(conn, message=row, outcome=ending.outcome, changed=changed)
        for row in after.values():
            faults.reach("send.settling", thread=row["thread"])
    for ending in tries:
        if ending.message["id"] not in after:
            endings.record(conn, message=ending.message, delivery=ending.delivery, stale=True)
    return after


def _turn(ending: Ending) -> tuple[int, int]:
    return ending.message["subject"] or 0, ending.message["id"]


def adopt(
    conn: Connection[Any],
    *,
    message: Row,
    outcome: Outcome,
    source: str,
    delivery: Delivery | None = None,
    event: Event | None = None,
    known: bool = False,
) -> Row | None:
    """Take over an outcome that the provider or a person gave, whoever holds the lease, and return the message.

    None when its state does not allow that. The lease is cleared, so that its holder's late answer changes nothing. `event`
    is what happens to the message, if not what the outcome's kind says; `known` says that a person sees to what comes of it.
    """
    event, wait = event or EVENTS[outcome.kind], backoff.LOOK_AGAIN if outcome.kind == "accepted" else 0.0
    with conn.transaction():
        ending = Ending(message=message, token=None, event=event, outcome=outcome, source=source, delay=wait, delivery=delivery)
        after = endings.write(conn, [ending]).get(message["id"])
        if after is not None:
            _take_effect(conn, message=after, outcome=outcome, changed=True, known=known)
    return after


def overturn(
    conn: Connection[Any], *, message: Row, outcome: Outcome, source: str, delivery: Delivery | None = None
) -> Row | None:
    """Take back in the books what the provider takes back of a success, and return the message, which stays what it was.

    A person is asked, unless it was one who brought it up (`source`). None when it was known before.
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
            endings.record(conn, message=message, delivery=delivery)
            speak_for(conn, message=after)
            concern = handlers.find(after["topic"]).take_back(conn, message=after, outcome=outcome)
            was = f"It was carried out, but now the payment provider says: {outcome.provider_status}."
            _raise_concern(conn, message=after, concern=concern or was, known=source == "person")
    return after


def repair(conn: Connection[Any], *, message: Row) -> bool:
    """Have books that stand otherwise follow a message, and return whether any did; raise Refusal where they cannot.

    A final outcome is applied once more, by the verbs that settle it. Nothing is sent, no state changes, and nobody is told
    again what they were told of the outcome.
    """
    handler = handlers.find(message["topic"])
    with conn.transaction():
        speak_for(conn, message=message)
        if not handler.reopen(conn, message=message):
            return False
        known = {name: message[name] for name in ("provider_id", "provider_status", "refusal")}
        if message["state"] in FINAL:
            outcome = Outcome(kind=message["state"], **known)
            if concern := handler.settle(conn, message=message, outcome=outcome):
                _raise_concern(conn, message=message, concern=concern)
            if message["state"] == "succeeded" and message["provider_status"] in transitions.TAKEN_BACK:
                handler.take_back(conn, message=message, outcome=outcome)  # whoever asks for this knows
    return True


def _json(value: Mapping[str, Any] | None) -> Jsonb | None:
    return None if value is None else Jsonb(dict(value))


def _take_effect(conn: Connection[Any], *, message: Row, outcome: Outcome, changed: bool, known: bool = False) -> None:
    """Apply the domain's effect of a final outcome, and tell whoever asked to be told of a change.

    A message about no customer speaks for none, and need not say so: customers' rows are closed to it.
    """
    if message["subject"] is not None:
        speak_for(conn, message=message)
    concern = handlers.settle(conn, message=message, outcome=outcome) if outcome.kind in FINAL else None
    if changed:
        for tell in wiring.plugged_all("BACKSTOP_ON_SETTLED"):
            tell(conn, message=message, outcome=outcome)
    if concern:
        _raise_concern(conn, message=message, concern=concern, known=known)


def speak_for(conn: Connection[Any], *, message: Row) -> None:
    """Let what follows in this transaction be about the message's customer, and be known as this message's doing."""
    subject = "" if message["subject"] is None else str(message["subject"])
    conn.execute(
        "SELECT set_config('backstop.subject', %s, true), set_config('backstop.message', %s, true)", (subject, str(message["id"]))
    )


def _raise_concern(conn: Connection[Any], *, message: Row, concern: str, known: bool = False) -> None:
    for tell in wiring.plugged_all("BACKSTOP_ON_CONTRADICTED"):
        tell(conn, message=message, concern=concern, known=known)
