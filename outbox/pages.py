"""What the pages of the outbox show: the list's lines and summary, and everything about one message. Reads only."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min

from ledger import diffs, keysets, links, people, wiring
from ledger.models import Execution, RowChange
from outbox import fates, handlers, timelines, transitions
from outbox.models import Delivery, Message, Request, WebhookEvent

NEWEST = keysets.Order(keys=("id",))
SIZE = 50
MOST = 200  # entries of a timeline


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How the outbox is."""

    waiting: int
    uncertain: int
    dead: int
    accepted: int
    oldest_due: timedelta | None

    @property
    def late(self) -> str:
        """Return the age of the oldest due message, in the unit that fits; nothing when none is due."""
        if self.oldest_due is None:
            return ""
        seconds = int(self.oldest_due.total_seconds())
        if seconds < 60:
            return f"{seconds} s"
        return f"{seconds // 60} min" if seconds < 2 * 3600 else f"{seconds // 3600} h"


def summary(*, now: datetime) -> Summary:
    """Return the depth, and how long the oldest due message has been due. Costs what is unfinished, not what is done."""
    unfinished = Message.objects.filter(state__in=transitions.UNFINISHED).values("state").annotate(n=Count("id"))
    counts = dict(unfinished.values_list("state", "n"))
    due = Message.objects.filter(state__in=transitions.CLAIMABLE, next_attempt_at__lte=now).aggregate(at=Min("next_attempt_at"))
    return Summary(
        waiting=counts.get("ready", 0) + counts.get("leased", 0),
        uncertain=counts.get("uncertain", 0),
        dead=counts.get("dead", 0),
        accepted=counts.get("accepted", 0),
        oldest_due=now - due["at"] if due["at"] else None,
    )


def lines(rows: list[Message]) -> list[dict[str, Any]]:
    """Return messages as lines of the table, in their order."""
    threads = links.conversations(row.thread for row in rows if row.thread)
    customers = people.subject_names(row.subject for row in rows)
    return [
        {
            "message": row,
            "sentence": handlers.sentence(topic=row.topic, payload=row.payload),
            "fate": fates.fate(row),
            "conversation": threads.get(row.thread) if row.thread else None,
            "customer": customers.get(row.subject, ""),
        }
        for row in rows
    ]


def case(message: Message) -> dict[str, Any]:
    """Return everything that the page of one message shows."""
    asked = list(message.requests.order_by("id"))
    return {
        **lines([message])[0],
        "steps": [_step(message, index) for index in range(len(message.steps))],
        "payload": _pretty(message.payload),
        "timeline": _timeline(message, asked),
        "open_request": next((request for request in asked if request.carried_out_at is None), None),
        "attempt": _attempt(message),
        "questions": links.questions(object=f"message:{message.id}"),
        "records": _records(message),
        "older": _older(message),
        "may": _may(message),
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


def _records(message: Message) -> list[diffs.Record]:
    """Return what settling it changed in the books."""
    columns = ("table_name", "operation", "before", "after")
    changes = RowChange.objects.filter(message_id=message.id).order_by("id").values(*columns)
    return diffs.records(changes, money=wiring.plugged("BACKSTOP_MONEY"))


def _older(message: Message) -> Message | None:
    """Return the unfinished message that keeps this one waiting, or None."""
    if message.state in transitions.FINAL:
        return None
    waiting = Message.objects.filter(aggregate=message.aggregate, id__lt=message.id, state__in=transitions.UNFINISHED)
    found: Message | None = waiting.order_by("id").first()
    return found


def _may(message: Message) -> str:
    """Return the one request that the message's state allows, or nothing."""
    if message.state in ("ready", "leased") and message.first_sent_at is None:
        return "cancel"
    return "replay" if message.state == "dead" and not message.compensation_needed else ""
