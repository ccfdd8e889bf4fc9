"""Instants and days in the installation's zone."""

from datetime import date, datetime, time

from django.db.models import Q
from django.utils import timezone


def clock(at: datetime) -> str:
    """Return the time of day of an instant, for a line of text: "09:41"."""
    return timezone.localtime(at).strftime("%H:%M")


def moment(at: datetime) -> str:
    """Return a time of today as "09:41", any other with its day: "26 Nov 09:41"."""
    there = timezone.localtime(at)
    return clock(at) if there.date() == timezone.localdate() else f"{there.day} {there:%b} {clock(at)}"


def instants(column: str, *, since: date | None, until: date | None) -> Q:
    """Return the condition that the column lies between two days, both included whole; None leaves that end open."""
    wanted = Q()
    if since:
        wanted &= Q(**{f"{column}__gte": timezone.make_aware(datetime.combine(since, time.min))})
    if until:
        wanted &= Q(**{f"{column}__lte": timezone.make_aware(datetime.combine(until, time.max))})
    return wanted
