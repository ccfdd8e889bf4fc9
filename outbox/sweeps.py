"""The provider's objects of the last days against our messages, both ways: what no event and no look-up has told us.

Only objects that carry a uid are looked at: others may use the same account.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from outbox import outcomes, transitions
from outbox.leases import Row
from outbox.lookups import PAGE, UID, Get

LAST = timedelta(hours=48)  # how far back a sweep looks
LISTS = ("/v1/payment_intents", "/v1/refunds", "/v1/credit_notes")
# What may happen to an object that was made long before: the events of it are young.
NEWS = ("payment_intent.succeeded", "refund.failed")
ENDED = frozenset(transitions.TAKEN_BACK)  # moves no money, or none any more
Kind = Literal["no_message", "no_object", "differs", "twice", "contradicts"]
Found = Mapping[str, Any]

OF_UIDS = """
SELECT id, uid, topic, state, provider_id, provider_status, refusal, steps, account FROM public.outbox_message WHERE uid = ANY(%s)
"""
# Only what was settled before the objects were listed must be among them.
SETTLED = """
SELECT id, uid, topic, state, provider_id, provider_status, refusal, steps, account FROM public.outbox_message
WHERE state = 'succeeded' AND provider_id IS NOT NULL AND first_sent_at >= %s ORDER BY id
"""


class Unanswered(Exception):
    """The provider did not give a list, or an object, that a sweep needs; nothing follows from that."""


@dataclass(frozen=True, kw_only=True)
class Stray:
    """An object and a message that do not fit together.

    no_message: the object carries a uid that no message has · no_object: the message succeeded, and the provider knows no such
    object · differs: another amount, currency or owner than was asked for · twice: two objects that may move money carry one
    uid · contradicts: the object ended otherwise than the message.
    """

    kind: Kind
    uid: str
    object_id: str
    message: int | None  # None: there is none
    seen: Mapping[str, Any]  # what is kept of the object, see outcomes.compared; amounts in the provider's units
    asked: Mapping[str, Any]  # what the message asked for, in the same units


def sweep(conn: Connection[Any], get: Get, *, since: datetime) -> Iterator[Stray]:
    """Yield what does not fit among the objects made, or told of by an event, since then. Raise Unanswered.

    `get` makes one GET.

    `conn` is in autocommit mode: no transaction is open while the provider is asked.
    """
    settled = _rows(conn, SETTLED, since + timedelta(minutes=5))
    told = (event["data"]["object"] for event in _listed(get, "/v1/events", since=since, types=list(NEWS)))
    found = {one["id"]: one for one in told}
    found |= {one["id"]: one for path in LISTS for one in _listed(get, path, since=since)}  # as they are now
    groups = _by_uid(found.values())
    messages = {str(row["uid"]): row for row in _rows(conn, OF_UIDS, list(_uuids(groups)))}
    for uid, objects in groups.items():
        yield from _of_objects(uid, objects, message=messages.get(uid))
    for message in settled:
        if message["provider_id"] not in {one["id"] for one in groups.get(str(message["uid"]), ())}:
            yield from _missing(get, message)


def _listed(get: Get, path: str, *, since: datetime, **more: Any) -> Iterator[Found]:
    params: dict[str, Any] = {"limit": PAGE, "created": {"gte": int(since.timestamp())}} | more
    while True:
        page = _answered(get, path, params)
        yield from page.get("data") or ()
        if not page.get("has_more") or not page.get("data"):
            return
        params["starting_after"] = page["data"][-1]["id"]


def _answered(get: Get, path: str, params: Mapping[str, Any]) -> Found:
    answer = get(path, params)
    if answer.status != 200 or answer.body is None:
        raise Unanswered(f"{path}: {answer.status or answer.failure}")
    return answer.body


def _by_uid(found: Iterable[Found]) -> dict[str, list[Found]]:
    groups: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        uid = (one.get("metadata") or {}).get(UID)
        if isinstance(uid, str):
            groups[uid].append(one)
    return groups


def _uuids(groups: Iterable[str]) -> Iterator[UUID]:
    for uid in groups:
        try:
            yield UUID(uid)
        except ValueError:
            continue


def _of_objects(uid: str, objects: list[Found], *, message: Row | None) -> Iterator[Stray]:
    if message is None:
        for one in objects:
            yield _stray("no_message", one, uid=uid)
        return
    for one in objects:
        if not outcomes.as_asked(one, asked=message["steps"][0]["params"]):
            yield _stray("differs", one, uid=uid, message=message)
        elif contradicts(message, found=one):
            yield _stray("contradicts", one, uid=uid, message=message)
    live = [one for one in objects if one.get("status") not in ENDED]
    if len(live) > 1:
        other = next((one for one in live if one["id"] != message["provider_id"]), live[0])
        yield _stray("twice", other, uid=uid, message=message)


def contradicts(message: Mapping[str, Any], *, found: Found) -> bool:
    """Return whether an object says that a finished message ended otherwise; a success taken back is known by its status."""
    status = found.get("status")
    if message["state"] in ("rejected", "cancelled"):
        return status in transitions.DONE and message["refusal"] != outcomes.PUT_RIGHT
    own = message["state"] == "succeeded" and found["id"] == message["provider_id"]
    return own and status in ENDED and status != message["provider_status"]


def _missing(get: Get, message: Row) -> Iterator[Stray]:
    """Yield a message whose object is not listed, unless the provider knows it by its id: its clock may differ from ours."""
    path = f"{message['steps'][0]['path']}/{message['provider_id']}"
    answer = get(path, {})
    if answer.status == 404:
        yield _stray("no_object", {"id": message["provider_id"]}, uid=str(message["uid"]), message=message)
    elif answer.status != 200:
        raise Unanswered(f"{path}: {answer.status or answer.failure}")


def _stray(kind: Kind, found: Found, *, uid: str, message: Row | None = None) -> Stray:
    asked = message["steps"][0]["params"] if message else {}
    number = message["id"] if message else None
    return Stray(kind=kind, uid=uid, object_id=found["id"], message=number, seen=outcomes.compared(found), asked=asked)


def _rows(conn: Connection[Any], query: Any, value: Any) -> list[Row]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, (value,)).fetchall()
