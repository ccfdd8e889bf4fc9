"""What the pages of the outbox show: the list's lines, and everything about one message. Reads only."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger import connections, diffs, keysets, links, people, wiring
from ledger.models import Execution, RowChange
from outbox import bulk, comparisons, fates, handlers, requests, sends_after, timelines, transitions
from outbox.models import Delivery, Message, Request, WebhookEvent

NEWEST = keysets.Order(keys=("id",))
SIZE = 50
MOST = 200  # entries of a timeline
ASKS: dict[str, dict[str, str]] = {
    "replay": {"verb": "Try again", "icon": "rotate-ccw"},
    "cancel": {"verb": "Withdraw", "icon": "undo-2"},
    "look_up": {"verb": "Look up", "icon": "file-search"},
}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Something that a person may ask of a message."""

    kind: str
    verb: str
    icon: str
    then: str


def lines(rows: list[Message]) -> list[dict[str, Any]]:
    """Return messages as lines of the table, in their order."""
    threads = links.conversations(row.thread for row in rows if row.thread)
    customers = people.subject_names(row.subject for row in rows)
    undos = sends_after.offered(rows)
    return [
        {
            "message": row,
            "sentence": handlers.sentence(topic=row.topic, payload=row.payload),
            "fate": fates.fate(row),
            "undo": undos.get(row.id),
            "conversation": threads.get(row.thread) if row.thread else None,
            "customer": customers.get(row.subject, ""),
        }
        for row in rows
    ]


def case(message: Message) -> dict[str, Any]:
    """Return everything that the page of one message shows."""
    asked = list(message.requests.order_by("id"))
    (line,) = lines([message])
    return {
        **line,
        "steps": [_step(message, index) for index in range(len(message.steps))],
        "payload": _pretty(message.payload),
        "timeline": _timeline(message, asked),
        "open_request": next((request for request in asked if request.carried_out_at is None), None),
        "attempt": _attempt(message),
        "questions": links.questions(object=f"message:{message.id}"),
        "records": records(message),
        "older": _older(message),
        "asks": [ask for ask in _asks(message) if not (line["undo"] and ask.kind == "cancel")],  # that needs no reason
        "pairs": comparisons.pairs(message),
    }


def _step(message: Message, index: int) -> dict[str, Any]:
    step = message.steps[index]
    return {
        "name": timelines.NAMES.get(step["name"], step["name"]),
        "request": f"{step['method']} {step['path']}",
        "params": _pretty(step["params"]),
        "key": step["key"],
        "current": index == message.step and message.state not in transitions.FINAL,
    }


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def _timeline(message: Message, asked: list[Request]) -> list[timelines.Entry]:
    deliveries = list(Delivery.objects.filter(message_id=message.id).order_by("-id")[:MOST])
    found = (
        WebhookEvent.objects.filter(object_id=message.provider_id).order_by("-received_at")[:MOST] if message.provider_id else []
    )
    names = people.names(request.requested_by for request in asked)
    return timelines.timeline(message, deliveries=deliveries, requests=asked, events=list(found), people=names)


def _attempt(message: Message) -> Any:
    """Return the id of the attempt that promised the message, or None."""
    if message.thread is None:
        return None
    cause = {"thread": message.thread, "ai_message_id": message.ai_message_id, "call_index": message.call_index}
    return Execution.objects.filter(**cause).values_list("attempt_id", flat=True).first()


def records(message: Message, *, within: tuple[datetime, datetime] | None = None) -> list[diffs.Record]:
    """Return what settling it changed in the books, or only what it changed within that time."""
    columns = ("table_name", "operation", "before", "after")
    changes = RowChange.objects.filter(message_id=message.id).order_by("id")
    found = changes.filter(changed_at__range=within) if within else changes
    return diffs.records(found.values(*columns), money=wiring.plugged("BACKSTOP_MONEY"))


def _older(message: Message) -> Message | None:
    """Return the unfinished message that keeps this one waiting, or None."""
    if message.state in transitions.FINAL:
        return None
    waiting = Message.objects.filter(aggregate=message.aggregate, id__lt=message.id, state__in=transitions.UNFINISHED)
    found: Message | None = waiting.order_by("id").first()
    return found


def _asks(message: Message) -> list[Ask]:
    """Return what may be asked of the message in its state, the way out first."""
    with connections.writing() as conn:
        possible = requests.possible(conn, message=message.id)
    return [Ask(kind=kind, then=bulk.will(message, kind), **words) for kind, words in ASKS.items() if kind in possible]
