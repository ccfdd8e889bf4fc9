"""The ways out of a message that waits for a person, one verb each, in the transaction that also ends the request.

What the provider says is asked before that transaction. A verb that finds its request impossible says why, and changes nothing.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from psycopg import Connection
from psycopg.rows import dict_row

from ledger.refusals import Refusal
from outbox import adoptions, gateway, handlers, lookups, settling, transitions
from outbox.endings import Delivery
from outbox.leases import Row
from outbox.lookups import Finding
from outbox.messages import GIVE_UP_AFTER
from outbox.outcomes import FINAL, PUT_RIGHT, Outcome
from outbox.transitions import Event

MESSAGE = "SELECT * FROM public.outbox_message WHERE id = %s"
PUT_BACK = """
UPDATE public.outbox_message
SET state = %(state)s, attempts = 0, next_attempt_at = now(), give_up_at = now() + %(give_up_after)s, last_error = NULL
WHERE id = %(message)s AND state = ANY(%(sources)s) AND first_sent_at IS NOT DISTINCT FROM %(first_sent_at)s
  AND NOT compensation_needed
RETURNING id
"""
YOUNG = "SELECT key_deadline IS NULL OR key_deadline > now() FROM public.outbox_message WHERE id = %s"
CLEAR = "UPDATE public.outbox_message SET compensation_needed = false WHERE id = %s AND compensation_needed RETURNING id"

ASKS_PROVIDER = frozenset({"look_up", "adopt", "settle_rejected", "refund"})
NOT_POSSIBLE = "not possible: "  # begins the outcome of a request that came to nothing, before the sentence
PATIENCE = timedelta(minutes=5)  # how long a request waits for a provider that does not answer
# An intent in one of these has moved no money, and can until it is cancelled.
CANCELLABLE = frozenset({"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture"})


T = TypeVar("T")


class NotNow(Exception):
    """The request stays open: a worker has the message, or the provider does not answer just now."""


class Impossible(Exception):
    """The request cannot be carried out; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the provider said when the request was taken up."""

    finding: Finding
    duration_ms: int

    @property
    def outcome(self) -> Outcome:
        """Return what it means for the message."""
        return self.finding.outcome

    @property
    def delivery(self) -> Delivery:
        """Return it as evidence."""
        told = None if self.finding.kind == "known" else self.finding.kind
        return Delivery(step="lookup", outcome=self.outcome, duration_ms=self.duration_ms, told=told)

    @property
    def words(self) -> str:
        """Return what was found, in a few words."""
        if self.finding.kind == "absent":
            return "the provider has nothing of it"
        return f"the provider says {(self.outcome.provider_status or self.outcome.error or 'nothing').replace('_', ' ')}"


def prepare(conn: Connection[Any], *, request: Row) -> Asked | None:
    """Ask the provider what a request needs to know, outside any transaction; raise NotNow."""
    with conn.cursor(row_factory=dict_row) as cursor:
        message = cursor.execute(MESSAGE, (request["message_id"],)).fetchone()
    assert message is not None  # a foreign key says so
    if is_in_work(message, kind=request["kind"]):
        raise NotNow
    if request["kind"] not in ASKS_PROVIDER:
        return None
    asked = _looked_up(message)
    if request["kind"] == "settle_rejected" and asked.outcome.provider_status in CANCELLABLE:
        asked = _cancelled(message, asked, request=request)
    if asked.finding.kind == "unanswered" and request["age"] < PATIENCE:
        raise NotNow
    return asked


def is_in_work(message: Row, *, kind: str) -> bool:
    """Return whether a worker has the message now; withdrawing comes too late for one that is sent, and so need not wait."""
    return message["state"] == "leased" and (kind != "cancel" or message["first_sent_at"] is None)


def _looked_up(message: Row) -> Asked:
    def get(path: str, params: Mapping[str, Any]) -> Any:
        return gateway.get(path, params, account=message["account"], version=message["api_version"])

    started = time.monotonic()
    finding = lookups.find(get, message=message)
    return Asked(finding=finding, duration_ms=round((time.monotonic() - started) * 1000))


def _cancelled(message: Row, asked: Asked, *, request: Row) -> Asked:
    """Cancel what could still succeed at the provider, and return how things stand then. Cancelling moves no money."""
    path, key = f"{message['steps'][0]['path']}/{asked.outcome.provider_id}/cancel", f"{message['uid']}:cancel:{request['id']}"
    gateway.post(path, {}, key=key, account=message["account"], version=message["api_version"])
    return _looked_up(message | {"provider_id": asked.outcome.provider_id})


def look_up(conn: Connection[Any], *, message: Row, request: Row, asked: Asked) -> str:
    """Take over what the provider says if that is something new, else keep what was seen."""
    after, new = _taken(conn, message=message, asked=asked, source="lookup")
    return f"settled: {_became(after, asked)}" if new else f"nothing new: {asked.words}"


def adopt(conn: Connection[Any], *, message: Row, request: Row, asked: Asked) -> str:
    """Make what the provider says the outcome, also late; where that is known already, have the books follow it."""
    after, new = _with_books(conn, message, lambda: _taken(conn, message=message, asked=asked, source="person"))
    if new:
        with suppress(Refusal):  # books that cannot follow what is under way are a question of their own
            settling.repair(conn, message=after)
        return f"adopted: {_became(after, asked)}"
    if not (_bears_out(asked, message=after) and settling.repair(conn, message=after)):
        raise Impossible(f"{asked.words}, and the message is {after['state']}")
    return f"adopted: the books follow the message, which is {after['state']}"


def _with_books(conn: Connection[Any], message: Row, settle: Callable[[], T]) -> T:
    """Settle; where the books are not as they were while the message was under way, put them there first. Raises Refusal."""
    try:
        with conn.transaction():
            return settle()
    except Refusal:
        if not settling.repair(conn, message=message):
            raise
        return settle()


def _bears_out(asked: Asked, *, message: Row) -> bool:
    """Return whether the provider says what the message says: only then should books follow it that do not."""
    found, kind = asked.finding.kind, asked.outcome.kind
    if message["state"] == "succeeded":
        taken_back = message["provider_status"] in transitions.TAKEN_BACK
        return found == "known" and kind == ("rejected" if taken_back else "succeeded")
    return found in ("absent", "unsent") or kind == ("rejected" if message["state"] in FINAL else "accepted")


def _became(message: Row, asked: Asked) -> str:
    """Return what a message is after the provider's word: a success that it takes back stays one, with a reversal."""
    taken_back = message["state"] == "succeeded" and asked.outcome.kind == "rejected"
    return f"taken back, {asked.outcome.provider_status}" if taken_back else str(message["state"])


def _taken(conn: Connection[Any], *, message: Row, asked: Asked, source: str, known: bool = False) -> tuple[Row, bool]:
    _check_answered(asked)
    if asked.finding.kind == "known":
        after, new = adoptions.take(
            conn, message=message["id"], outcome=asked.outcome, source=source, delivery=asked.delivery, known=known
        )
        if new:
            return after, True
    adoptions.note(conn, message=message, outcome=asked.outcome, delivery=asked.delivery)
    return message, False


def _check_answered(asked: Asked) -> None:
    if asked.finding.kind == "unanswered":
        raise Impossible(f"the provider did not answer: {asked.outcome.error or 'nothing came back'}")


def resend(conn: Connection[Any], *, message: Row, request: Row, asked: None) -> str:
    """Have it sent again with the key that it has, after a look-up, with fresh attempts."""
    young = conn.execute(YOUNG, (message["id"],)).fetchone()
    if not young or not young[0]:
        raise Impossible("the provider may have forgotten its key by now, so that it could move the money twice")
    _put_back(conn, message, event=Event.RESEND)
    return "put back"


def replay(conn: Connection[Any], *, message: Row, request: Row, asked: None) -> str:
    """Put a dead message back: to be sent if nothing ever left, else to be looked up first."""
    _put_back(conn, message, event=Event.REPLAY_UNSENT if message["first_sent_at"] is None else Event.REPLAY_SENT)
    return "put back"


def _put_back(conn: Connection[Any], message: Row, *, event: Event) -> None:
    given = {
        "message": message["id"],
        "state": transitions.TARGETS[event][1],
        "sources": transitions.sources(event),
        "first_sent_at": message["first_sent_at"],
        "give_up_after": GIVE_UP_AFTER,
    }
    if conn.execute(PUT_BACK, given).fetchone() is None:
        raise Impossible(message["state"])


def cancel(conn: Connection[Any], *, message: Row, request: Row, asked: None) -> str:
    """Withdraw what has not left."""
    withdrawn = settling.adopt(conn, message=message, outcome=Outcome(kind="cancelled"), source="person")
    return "withdrawn" if withdrawn else f"too late: {message['state']}"


def settle_rejected(conn: Connection[Any], *, message: Row, request: Row, asked: Asked) -> str:
    """End it as a refusal, when nothing is at the provider, or nothing that can still succeed."""
    _check_answered(asked)
    if asked.finding.kind == "absent":
        refused = replace(asked.outcome, kind="rejected", refusal="never_arrived")
    elif asked.outcome.kind == "rejected":
        refused = asked.outcome
    else:
        raise Impossible(asked.words)
    delivery = replace(asked.delivery, outcome=refused, told=asked.delivery.told)
    _ended(conn, message, outcome=refused, event=Event.SETTLE_REJECTED, delivery=delivery)
    return "settled: rejected"


def compensate(conn: Connection[Any], *, message: Row, request: Row, asked: None) -> str:
    """End a dead message as a refusal, and forget that it needs compensation: the money was put right elsewhere."""
    if message["state"] == "dead":
        _ended(conn, message, outcome=Outcome(kind="rejected", refusal=PUT_RIGHT), event=Event.COMPENSATE)
    elif conn.execute(CLEAR, (message["id"],)).fetchone() is None:
        raise Impossible(f"it is {message['state']}, and needs no compensation")
    return "noted"


def _ended(conn: Connection[Any], message: Row, *, outcome: Outcome, event: Event, delivery: Delivery | None = None) -> None:
    given: dict[str, Any] = {"outcome": outcome, "source": "person", "delivery": delivery, "event": event}
    if _with_books(conn, message, lambda: settling.adopt(conn, message=message, **given)) is None:
        raise Impossible(f"it is {message['state']} by now")


def refund(conn: Connection[Any], *, message: Row, request: Row, asked: Asked) -> str:
    """Send back money that the provider took and that is not owed; take the provider's word first that it has it."""
    after, _ = _with_books(conn, message, lambda: _taken(conn, message=message, asked=asked, source="person", known=True))
    give_back = handlers.find(message["topic"]).give_back
    if give_back is None or after["state"] != "succeeded":
        raise Impossible(f"{asked.words}, so no money of it is there")
    settling.speak_for(conn, message=after)
    return give_back(conn, message=after, reason=request["reason"])


EXITS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "cancel": cancel,
        "replay": replay,
        "look_up": look_up,
        "adopt": adopt,
        "resend": resend,
        "settle_rejected": settle_rejected,
        "compensate": compensate,
        "refund": refund,
    }
)
