"""What the control API says, as lines of the page: words, colours, amounts, and the message of ours that each is about."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from billing import money
from outbox.models import Message
from sandbox.console.forms import SettleForm

Json = dict[str, Any]
UID = "backstop_uid"  # the metadata that names the message
STATES = {  # Stripe's status → our colour and icon
    "succeeded": ("confirmed", "check-check"),
    "processing": ("sent", "send"),
    "pending": ("sent", "send"),
    "requires_action": ("held", "user-round"),
    "requires_confirmation": ("queued", "circle-dashed"),
    "requires_payment_method": ("failed", "ban"),
    "failed": ("failed", "ban"),
    "canceled": ("undone", "undo-2"),
    "draft": ("queued", "circle-dashed"),
    "open": ("sent", "send"),
    "paid": ("confirmed", "check-check"),
    "issued": ("confirmed", "check-check"),
    "void": ("undone", "undo-2"),
}
MOVES = {
    "charge": "Charge",
    "refund": "Refund",
    "refund_failed": "Came back: the refund failed",
    "refund_canceled": "Came back: the refund was cancelled",
}
DELIVERY = {  # a delivery's state → colour, icon and word
    "delivered": ("confirmed", "check-check", "Delivered"),
    "waiting": ("queued", "clock", "Waits"),
    "dropped": ("undone", "ban", "Dropped"),
    "given_up": ("failed", "triangle-alert", "Given up"),
}


@dataclass(frozen=True, kw_only=True)
class State:
    """A status as a badge."""

    state: str
    icon: str
    word: str


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What tells one object from another; an id leads to its object."""

    name: str
    value: str
    is_id: bool = True


@dataclass(frozen=True, kw_only=True)
class Object:
    """A customer, a payment, a refund, an invoice or a credit note, and what an admin can make of it."""

    id: str
    account: str
    what: str
    at: datetime
    status: State | None
    facts: list[Fact]
    message: int | None
    ends: list[tuple[str, str]]
    raw: str
    becomes: str = ""
    due: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Move:
    """One line of the money log."""

    seq: int
    at: datetime
    what: str
    amount: str
    object: str
    intent: str
    key: str
    message: int | None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One promise to tell the application of an event."""

    id: int
    event: str
    type: str
    object: str
    status: State
    attempts: int
    answer: str
    due: datetime | None


def amount(minor: int, currency: str) -> str:
    """Return an amount of the provider's, in its minor units and lower-case code, as people read it."""
    code = currency.upper()
    ours, rest = divmod(minor, 100) if code in money.PADDED_BY_PROVIDER else (minor, 0)
    return money.format(ours, code) if not rest else f"{minor} {currency}"


def objects(found: Iterable[Json]) -> list[Object]:
    """Return lines for objects; one query finds their messages."""
    rows = list(found)
    messages = messages_of(row["body"].get("metadata") for row in rows)
    return [_object(row, messages=messages) for row in rows]


def _object(row: Json, *, messages: dict[UUID, int]) -> Object:
    body = row["body"]
    status = body.get("status")
    return Object(
        id=body["id"],
        account=row["account"],
        what=_what(row["kind"], body),
        at=instant(body["created"]),
        status=_status(status) if status else None,
        facts=list(_facts(body)),
        message=_message(body.get("metadata"), messages),
        ends=[(end, SettleForm.ENDS[end]) for end in row["possible"]],
        raw=json.dumps(body, indent=2, ensure_ascii=False),
        becomes=row.get("becomes") or "",
        due=instant(row["due"]) if row.get("due") else None,
    )


def _what(kind: str, body: Json) -> str:
    if kind == "customer":
        return str(body.get("name") or body.get("email") or "A customer without a name")
    minor = body.get("amount", body.get("total"))
    if minor is not None and "currency" in body:
        name = "Payment" if kind == "payment_intent" else kind.replace("_", " ").capitalize()
        return f"{name} of {amount(minor, body['currency'])}"
    return str(body.get("type") or kind).replace("_", " ").capitalize()


def _facts(body: Json) -> Iterator[Fact]:
    """Yield what an object belongs to, and why it is as it is."""
    named = {"customer": "customer", "payment_intent": "payment", "latest_charge": "charge", "invoice": "invoice"}
    for name, label in named.items():
        if isinstance(body.get(name), str):
            yield Fact(name=label, value=body[name])
    if body.get("object") == "credit_note":
        yield from (Fact(name="refund", value=one["refund"]) for one in body["refunds"])
    if body.get("email"):
        yield Fact(name="e-mail", value=str(body["email"]), is_id=False)
    error = body.get("last_payment_error") or {}
    for reason in (error.get("decline_code") or error.get("code"), body.get("failure_reason"), body.get("pending_reason")):
        if reason:
            yield Fact(name="because", value=str(reason), is_id=False)


def _status(status: str) -> State:
    state, icon = STATES.get(status, ("queued", "circle-dashed"))
    return State(state=state, icon=icon, word=status.replace("_", " ").capitalize())


def moves(found: Iterable[Json]) -> list[Move]:
    """Return lines for movements of money."""
    rows = list(found)
    messages = messages_of(row["metadata"] for row in rows)
    return [
        Move(
            seq=row["seq"],
            at=instant(row["at"]),
            what=MOVES.get(row["kind"], str(row["kind"])),
            amount=amount(row["amount"], row["currency"]),
            object=row["object"],
            intent=row["payment_intent"] or "",
            key=row["idempotency_key"] or "",
            message=_message(row["metadata"], messages),
        )
        for row in rows
    ]


def sums(found: Iterable[Json]) -> list[Json]:
    """Return the sums per currency as people read them."""
    names = ("charged", "refunded", "returned", "balance")
    return [
        {"currency": row["currency"].upper(), "movements": row["movements"]}
        | {name: amount(row[name], row["currency"]) for name in names}
        for row in found
    ]


def deliveries(found: Iterable[Json]) -> list[Delivery]:
    """Return lines for deliveries."""
    return [
        Delivery(
            id=row["id"],
            event=row["event"],
            type=row["type"],
            object=row["object"] or "",
            status=State(**dict(zip(("state", "icon", "word"), DELIVERY[row["state"]], strict=True))),
            attempts=row["attempts"],
            answer=str(row["status"] or row["error"] or ""),
            due=instant(row["due"]) if row["state"] == "waiting" else None,
        )
        for row in found
    ]


def messages_of(metadata: Iterable[Json | None]) -> dict[UUID, int]:
    """Return the messages that metadata name, by uid."""
    uids = {uid for given in metadata if (uid := _uid(given))}
    return dict(Message.objects.filter(uid__in=uids).values_list("uid", "id")) if uids else {}


def _message(metadata: Json | None, messages: dict[UUID, int]) -> int | None:
    uid = _uid(metadata)
    return messages.get(uid) if uid else None


def _uid(metadata: Json | None) -> UUID | None:
    try:
        return UUID((metadata or {})[UID])
    except (KeyError, ValueError, AttributeError, TypeError):
        return None


def instant(seconds: int) -> datetime:
    """Return a Unix time as a date; templates show it in the installation's zone."""
    return datetime.fromtimestamp(seconds, tz=UTC)


def span(seconds: int) -> str:
    """Return a time of so many seconds in words: "8 d 1 h", "90 s"."""
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
