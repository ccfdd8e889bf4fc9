"""What must be true before a process delivers anything."""

from typing import Any

from django.conf import settings
from django.core import checks

from outbox import leases, live


@checks.register("outbox")
def check_provider(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a missing key, a live key for another address, and time-outs that a lease does not cover."""
    if settings.LOGIN != "outbox":
        return []
    return faults(key=settings.STRIPE_API_KEY, base=settings.STRIPE_API_BASE, timeouts=settings.STRIPE_TIMEOUTS)


def faults(*, key: str, base: str, timeouts: tuple[float, float]) -> list[checks.CheckMessage]:
    """Return what is wrong with how the provider is reached; `timeouts` in seconds."""
    found: list[checks.CheckMessage] = []
    if not key:
        found.append(checks.Error("STRIPE_API_KEY is not set: give the outbox worker the provider's key.", id="outbox.E001"))
    try:
        live.check_key(key, base)
    except live.LiveKeyElsewhere as error:
        found.append(checks.Error(str(error), id="outbox.E002"))
    if sum(timeouts) * 2 >= leases.LEASE_SECONDS:
        sentence = f"STRIPE_TIMEOUTS must be less than half a lease together, which is {leases.LEASE_SECONDS} seconds."
        found.append(checks.Error(sentence, id="outbox.E003"))
    return found
