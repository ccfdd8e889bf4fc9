"""Days of the installation's zone as a condition on an instant."""

from datetime import date, datetime, time

from django.db.models import Q
from django.utils import timezone


def instants(column: str, *, since: date | None, until: date | None) -> Q:
    """Return the condition that the column lies between two days, both included whole; None leaves that end open."""
    wanted = Q()
    if since:
        wanted &= Q(**{f"{column}__gte": timezone.make_aware(datetime.combine(since, time.min))})
    if until:
        wanted &= Q(**{f"{column}__lte": timezone.make_aware(datetime.combine(until, time.max))})
    return wanted
