"""What happened to a message, in order, as its page tells it: calls, look-ups, events, requests. Words only."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from outbox.models import Delivery, Message, Request, WebhookEvent


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One thing that happened."""

    at: datetime
    icon: str
    state: str
    title: str
    small: str = ""
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()


# outcome: state, icon, what it means
CALLS = {
    "advanced": ("sent", "check", "Done; the next step follows"),
    "succeeded": ("confirmed", "check-check", "Confirmed"),
    "rejected": ("failed", "ban", "Refused, no money moved"),
    "accepted": ("sent", "send", "Taken, not final"),
    "retry": ("queued", "clock", "Not executed; another try follows"),
    "park": ("held", "lock", "The provider refused our key; nothing was executed"),
    "uncertain": ("uncertain", "circle-question-mark", "No usable answer, so nobody knows whether it was executed"),
    "dead": ("held", "hand", "A person has to look"),
}
LOOK_UPS = CALLS | {
    "absent": ("queued", "file-search", "Nothing of ours is there"),
    "unsent": ("sent", "file-search", "It is there; its next step was not done"),
    "unanswered": ("uncertain", "wifi-off", "The provider did not say"),
}
NAMES = {
    "create": "Create",
    "confirm": "Confirm",
    "refund": "Refund",
    "credit_note": "Credit note",
    "lookup": "Look-up",
    "webhook": "Event, looked up",
}
STATES = {"succeeded": "confirmed", "rejected": "refused", "cancelled": "withdrawn", "dead": "a person has to look"}
ASKED = {
    "cancel": "Asked to withdraw it",
    "replay": "Asked to try it again",
    "look_up": "Asked to look it up",
    "adopt": "Asked to take over what the provider says",
    "resend": "Asked to send it again with the same key",
    "settle_rejected": "Asked to settle it as refused",
    "compensate": "Noted that the money was put right elsewhere",
    "refund": "Asked to give the money back",
}


def timeline(
    message: Message, *, deliveries: list[Delivery], requests: list[Request], events: list[WebhookEvent], people: dict[int, str]
) -> list[Entry]:
    """Return what happened, oldest first; `people` are user names by id."""
    entries = [_queued(message)]
    entries += [_call(delivery) for delivery in deliveries]
    entries += [_event(event) for event in events]
    for request in requests:
        entries += _request(request, people)
    return sorted(entries, key=lambda entry: entry.at)


def _queued(message: Message) -> Entry:
    until = message.undo_until
    text = f"Staff may take it back until {timezone.localtime(until):%H:%M:%S}." if until else ""
    return Entry(at=message.created_at, icon="clock", state="queued", title="Queued", small="committed with its cause", text=text)


def _call(delivery: Delivery) -> Entry:
    words = LOOK_UPS if delivery.step in ("lookup", "webhook") else CALLS
    state, icon, meaning = words.get(delivery.outcome, ("queued", "circle-dashed", delivery.outcome))
    late = "Its lease was gone when the answer came: kept as evidence, nothing was changed." if delivery.stale else ""
    return Entry(
        at=delivery.started_at,
        icon="unlink" if delivery.stale else icon,
        state="undone" if delivery.stale else state,
        title=f"{NAMES.get(delivery.step, delivery.step)}: {meaning[:1].lower()}{meaning[1:]}",
        small="too late" if delivery.stale else f"{delivery.duration_ms} ms",
        text=late,
        facts=tuple(_facts(delivery)),
    )


def _facts(delivery: Delivery) -> Iterator[tuple[str, str]]:
    shown = {
        "HTTP": delivery.http_status,
        "Answer": delivery.error,
        "Object": delivery.provider_id,
        "Status": delivery.provider_status,
        "Request": delivery.request_id,
        "Replayed": "an old answer, repeated" if delivery.replayed else None,
    }
    yield from ((name, str(value)) for name, value in shown.items() if value is not None)


def _event(event: WebhookEvent) -> Entry:
    return Entry(
        at=event.received_at,
        icon="webhook",
        state="sent",
        title=f"The provider sent {event.type}",
        small=_outcome(event.outcome) if event.outcome else "not processed yet",
        facts=(("Event", event.event_id),),
    )


def _outcome(text: str) -> str:
    """Return what came of an event, the message's state in people's words."""
    what, colon, state = text.partition(": ")
    return f"{what}{colon}{STATES.get(state, state)}"


def _request(request: Request, people: dict[int, str]) -> Iterator[Entry]:
    who = people.get(request.requested_by, f"user {request.requested_by}")
    yield Entry(
        at=request.requested_at,
        icon="user-round",
        state="info",
        title=f"{who}: {ASKED[request.kind].lower()}",
        text=request.reason,
    )
    if request.carried_out_at:
        outcome = (request.outcome or "")[:1].upper() + (request.outcome or "")[1:]
        yield Entry(at=request.carried_out_at, icon="check", state="info", title=outcome, small="by the outbox worker")
