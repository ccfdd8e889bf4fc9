"""The books against the Stripe sandbox's money log: what moved there moved for a message of ours, once, as the books say."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import requests
from django.conf import settings
from psycopg import Connection
from psycopg.rows import dict_row

from billing import money
from ledger import invariants
from ledger.invariants import Comparison, Violation

TIMEOUT = (3, 60)  # seconds: to connect, between two bytes
NEWS = 600  # seconds that an event may take
NOT_COMPARED = "The books were not compared with the provider: this instance has no Stripe sandbox."
Movement = Mapping[str, Any]
Row = dict[str, Any]

# The requests as they were frozen say what must have moved, in the provider's own units.
# `reversed`: the books know that what succeeded came back. `vouched`: a person said that the money was put right elsewhere.
MESSAGES = """
SELECT m.id AS message_id, m.uid, m.topic, m.state, m.provider_id, m.steps #> '{0,params}' AS params,
    EXISTS (SELECT FROM public.billing_refund r WHERE m.topic = 'payment.refund' AND r.status = 'reversed'
        AND r.id = (m.payload ->> 'refund_id')::bigint) AS reversed,
    m.state = 'rejected' AND EXISTS (SELECT FROM public.outbox_request q WHERE q.message_id = m.id
        AND q.kind = 'compensate' AND q.carried_out_at IS NOT NULL) AS vouched
FROM public.outbox_message m WHERE m.topic IN ('payment.charge', 'payment.refund')
"""
BOOKS = """
SELECT currency, sum(amount)::bigint FROM (
    SELECT currency, amount_minor AS amount FROM public.billing_payment
    UNION ALL SELECT currency, -amount_minor FROM public.billing_refund WHERE status = 'confirmed') AS moved
GROUP BY currency
"""


class NoAnswer(Exception):
    """The sandbox did not tell what moved."""


@dataclass(frozen=True)
class Log:
    """Where the money log of a sandbox is."""

    base: str
    key: str

    @classmethod
    def of_instance(cls, data: Path) -> "Log | None":
        """Return the log of the instance in a data directory, or None when it has no sandbox."""
        file = data / "instance.json"
        found = json.loads(file.read_text()).get("stripe") if file.exists() else None
        return cls(base=found["api_base"].rstrip("/"), key=found["api_key"]) if found else None

    def movements(self, *, after: int = 0) -> list[Movement]:
        """Return what moved after a movement's number, oldest first; raise NoAnswer."""
        return list(self._get("money", {"after": after})["movements"])

    def now(self) -> int:
        """Return the sandbox's time, in seconds; it may be ahead of ours. Raise NoAnswer."""
        return int(self._get("clock", {})["now"])

    def _get(self, what: str, params: Mapping[str, int]) -> Any:
        with requests.Session() as session:
            session.trust_env = False
            session.headers["Authorization"] = f"Bearer {self.key}"
            try:
                answer = session.get(f"{self.base}/_sandbox/{what}", params=params, timeout=TIMEOUT)
                answer.raise_for_status()
                return answer.json()
            except (requests.RequestException, ValueError) as error:
                raise NoAnswer(type(error).__name__) from error


def compare(conn: Connection[Any], *, quiet: bool = False) -> Comparison:
    """Return how the books agree with the sandbox of this instance, if it has one.

    What is in the log before our snapshot must be ours by then; what our snapshot calls done must be in the log after it.
    """
    log = Log.of_instance(settings.DATA_DIR)
    if log is None:
        return Comparison(compared=False, says=NOT_COMPARED)
    try:
        before = log.movements()
        with invariants.snapshot(conn):
            messages, books = _messages(conn), dict(conn.execute(BOOKS).fetchall())
        later = log.movements(after=max((moved["seq"] for moved in before), default=0))
        if not quiet:
            _allow_for_news(messages, [*before, *later], since=log.now() - NEWS)
    except NoAnswer as error:
        says = f"The Stripe sandbox at {log.base} did not answer ({error}): the books were not compared with it."
        return Comparison(compared=False, says=says, violations=[Violation("sandbox.provider_answers", {"address": log.base})])
    return _judged(before, later, messages=messages, books=books, quiet=quiet)


def _messages(conn: Connection[Any]) -> dict[UUID, Row]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return {row["uid"]: row for row in cursor.execute(MESSAGES)}


def _allow_for_news(messages: Mapping[UUID, Row], movements: Iterable[Movement], *, since: int) -> None:
    """Let a refund that failed just now be as the books have it: the event that says so is on its way."""
    for uid, group in _by_uid(movements).items():
        message = messages.get(uid) if uid else None
        if message and not message["reversed"]:
            message["news"] = [movement for movement in group if not _is_of(movement) and movement["at"] > since]


def _judged(
    before: list[Movement], later: list[Movement], *, messages: Mapping[UUID, Row], books: Mapping[str, int], quiet: bool
) -> Comparison:
    moved = [*before, *later]
    found = [*_of_movements(before, messages, quiet=quiet), *_of_messages(moved, messages)]
    sums = _sums(moved, messages=messages, books=books)
    for currency, pair in sums.items():
        if pair["books"] != pair["provider"]:
            found.append(Violation("sandbox.sums_agree", {"currency": currency, **pair}))
    words = "agree" if not found else f"disagree in {len(found)} {'place' if len(found) == 1 else 'places'}"
    says = f"Compared with the Stripe sandbox's {len(moved)} movements: the books {words}."
    return Comparison(compared=True, says=says, movements=len(moved), sums=sums, violations=found)


def _of_movements(movements: Iterable[Movement], messages: Mapping[UUID, Row], *, quiet: bool) -> Iterator[Violation]:
    """Yield each movement that no message of ours explains."""
    for uid, group in _by_uid(movements).items():
        message = messages.get(uid) if uid else None
        for movement in group:
            about = {"movement": movement["seq"], "object": movement["object"], "amount": movement["amount"], "uid": uid}
            if message is None:
                yield Violation("sandbox.movement_is_ours", about | {"currency": movement["currency"]})
            elif not _may_have_moved(message, quiet=quiet):
                yield Violation("sandbox.movement_is_settled", about | _about(message))
            elif _is_of(movement) and (differs := _difference(movement, message)):
                yield Violation("sandbox.movement_is_as_asked", about | _about(message) | {"differs": differs})


def _of_messages(movements: Iterable[Movement], messages: Mapping[UUID, Row]) -> Iterator[Violation]:
    """Yield each message that moved money twice, or succeeded and did not, or whose money went back again."""
    groups = _by_uid(movements)
    for uid, message in messages.items():
        group = groups.get(uid, [])
        moves = [movement for movement in group if _is_of(movement)]
        if len(moves) > 1:
            objects = [movement["object"] for movement in moves]
            yield Violation("sandbox.moved_once", _about(message) | {"objects": objects})
        if message["state"] == "succeeded" and not moves:
            yield Violation("sandbox.success_moved", _about(message))
        if message["state"] == "rejected" and not message["vouched"] and (net := sum(movement["amount"] for movement in group)):
            yield Violation("sandbox.refusal_moved_nothing", _about(message) | {"amount": net})
        back = [movement for movement in group if not _is_of(movement) and movement not in message.get("news", ())]
        if message["state"] == "succeeded" and bool(back) != message["reversed"] and not message.get("news"):
            yield Violation("sandbox.failed_afterwards", _about(message) | {"object": message["provider_id"]})


def _by_uid(movements: Iterable[Movement]) -> dict[UUID | None, list[Movement]]:
    groups: dict[UUID | None, list[Movement]] = defaultdict(list)
    for movement in movements:
        try:
            groups[UUID(movement["metadata"]["backstop_uid"])].append(movement)
        except (KeyError, ValueError, AttributeError):
            groups[None].append(movement)
    return groups


def _is_of(movement: Movement) -> bool:
    """Return whether the movement is what a request asks for, and not money that comes back because it failed."""
    return movement["kind"] in ("charge", "refund")


def _may_have_moved(message: Row, *, quiet: bool) -> bool:
    """Return whether money may have moved for a message in this state; one that is under way may have, until all is quiet."""
    if message["state"] == "rejected":  # such as a refund that failed: its money went out and came back
        return str(message["topic"]) == "payment.refund" or bool(message["vouched"])
    return message["state"] in ("succeeded", "dead") or (not quiet and message["state"] in ("leased", "uncertain", "accepted"))


def _difference(movement: Movement, message: Row) -> str:
    """Return what of a movement is not as its request asked, or nothing."""
    asked, sign = message["params"], 1 if message["topic"] == "payment.charge" else -1
    expected = {"amount": sign * asked["amount"]} | {
        name: asked[name] for name in ("currency", "customer", "payment_intent") if name in asked
    }
    expected["kind"] = "charge" if sign == 1 else "refund"
    if message["provider_id"] is not None:
        expected["payment_intent" if sign == 1 else "object"] = message["provider_id"]
    return ", ".join(f"{name}: {movement[name]}, not {value}" for name, value in expected.items() if movement[name] != value)


def _sums(movements: Iterable[Movement], *, messages: Mapping[UUID, Row], books: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return what the books and the provider say per currency, in the provider's units, of what is settled here."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: {"books": 0, "provider": 0})
    for currency, amount in books.items():
        sent, code = money.to_provider(amount, currency)
        sums[code]["books"] += sent
    for uid, group in _by_uid(movements).items():
        message = messages.get(uid) if uid else None
        for movement in group:
            if message and message["state"] == "succeeded" and movement not in message.get("news", ()):
                sums[movement["currency"]]["provider"] += movement["amount"]
    return dict(sums)


def _about(message: Row) -> Row:
    return {"message_id": message["message_id"], "topic": message["topic"], "state": message["state"]}
