"""How the outbox is, in figures: what waits and since when, and each destination. Reads only; costs what is unfinished."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q

from outbox import destinations, rates, transitions
from outbox.models import Delivery, Destination, Message, Request

LATE = timedelta(seconds=30)  # beat alone takes up what is due within 10
LOST = timedelta(hours=24)  # the time over which lost leases are counted
LEASE_LOST = Q(stale=True) | Q(error="the worker was lost")  # as the index outbox_delivery_lost has it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number with what it counts, and the age of the oldest; `state` colours it when it wants a look."""

    label: str
    value: str
    small: str = ""
    state: str = ""
    query: str = ""  # the filter that shows what was counted


@dataclass(frozen=True, kw_only=True)
class Found:
    """How many messages are in a state, and when the oldest was queued."""

    number: int
    oldest: datetime | None


@dataclass(frozen=True, kw_only=True)
class Way:
    """A destination: whether it is open, and what waits for it."""

    name: str
    word: str
    state: str
    icon: str
    says: str
    due: int
    rate: str
    parked: bool = False
    until: datetime | None = None
    asked: bool = False  # a person has asked that it is tried now


def figures(*, now: datetime) -> list[Figure]:
    """Return the figures, those first that say whether anything leaves at all."""
    found = {state: Found(number=number, oldest=oldest) for state, number, oldest in _unfinished()}
    none = Found(number=0, oldest=None)
    going, accepted = found.get("leased", none).number, found.get("accepted", none).number
    queued = str(found.get("ready", none).number + going)
    lost = Delivery.objects.filter(LEASE_LOST, started_at__gte=now - LOST).count()
    return [
        Figure(label="Queued", value=queued, small=f"{going} being sent", query="state=ready"),
        _oldest_due(now),
        Figure(label="Sent, not final", value=str(accepted), small="looked up hourly", query="state=accepted"),
        _wanting("Uncertain", found.get("uncertain", none), state="uncertain", hue="uncertain", now=now),
        _wanting("Need a person", found.get("dead", none), state="dead", hue="held", now=now),
        Figure(label="Leases lost", value=str(lost), small="in 24 hours", state="failed" if lost else ""),
    ]


def ways(*, now: datetime) -> list[Way]:
    """Return every destination that is known, and how it is."""
    rows = {row.name: row for row in Destination.objects.all()}
    due = dict(_due(now).values_list("destination").annotate(n=Count("id")))
    asked = set(
        Request.objects.filter(destination__in=list(rows), carried_out_at__isnull=True).values_list("destination", flat=True)
    )
    return [
        _way(name, rows.get(name), due=due.get(name, 0), asked=name in asked, now=now)
        for name in dict.fromkeys([*destinations.DESTINATIONS, *sorted(rows)])
    ]


def age(time: timedelta) -> str:
    """Return how long, in the unit that fits."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 2 * 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 48 * 3600 else f"{seconds // 86400} d"


def _unfinished() -> Any:
    """Return, for each unfinished state, how many messages are in it and when the oldest was queued."""
    rows = Message.objects.filter(state__in=transitions.UNFINISHED).values_list("state")
    return rows.annotate(n=Count("id"), oldest=Min("created_at"))


def _due(now: datetime) -> Any:
    """Return what a relay may take up now."""
    return Message.objects.filter(state__in=transitions.CLAIMABLE, blocked=False, next_attempt_at__lte=now)


def _oldest_due(now: datetime) -> Figure:
    due = _due(now).aggregate(at=Min("next_attempt_at"))["at"]
    if due is None:
        return Figure(label="Oldest due", value="–", small="nothing is due")
    return Figure(label="Oldest due", value=age(now - due), small="due, not taken up", state="failed" if now - due > LATE else "")


def _wanting(label: str, found: Found, *, state: str, hue: str, now: datetime) -> Figure:
    small = f"oldest queued {age(now - found.oldest)} ago" if found.oldest else "none"
    return Figure(label=label, value=str(found.number), small=small, state=hue if found.number else "", query=f"state={state}")


def _way(name: str, row: Destination | None, *, due: int, asked: bool, now: datetime) -> Way:
    rate = rates.words(row.rate, row.burst) if row else rates.words(None, 1)
    about: dict[str, Any] = {"name": name, "due": due, "rate": rate, "asked": asked}
    if row is None or row.parked_until is None:
        return Way(word="Open", state="applied", icon="check", says="", **about)
    why = refusal(row.parked_because or "")
    if row.parked_until <= now:
        return Way(word="Trying one", state="sent", icon="send", says=f"{why} One message tries it now.", parked=True, **about)
    times = f" {row.refusals} refusals in a row." if row.refusals > 1 else ""
    return Way(word="Parked", state="held", icon="lock", says=f"{why}{times}", parked=True, until=row.parked_until, **about)


def refusal(code: str) -> str:
    """Return why a destination is parked, in a sentence."""
    if code.startswith(("401", "403")):
        return f"It refuses our key ({code})."
    slow = code.startswith("429") or code.endswith("rate_limit")
    return f"It asked us to send less ({code})." if slow else f"It refused us ({code})."
