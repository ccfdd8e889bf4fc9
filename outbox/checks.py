"""What must be true before a process delivers anything."""

from typing import Any

from django.conf import settings
from django.core import checks

from outbox import leases, live


@checks.register("outbox")
def check_provider(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a missing key, one for another address or of another mode, and time-outs that a lease does not cover."""
    if settings.LOGIN != "outbox":
        return []
    given = {"key": settings.STRIPE_API_KEY, "base": settings.STRIPE_API_BASE, "mode": settings.STRIPE_MODE}
    return faults(**given, timeouts=settings.STRIPE_TIMEOUTS)


@checks.register("outbox")
def check_events(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse, in production, to take the provider's events without knowing which mode they must be of."""
    takes = settings.PRODUCTION and settings.LOGIN == "web" and settings.STRIPE_WEBHOOK_SECRETS
    if not takes or settings.STRIPE_MODE:
        return []
    sentence = "STRIPE_MODE is not set: say live or test, as the provider's key is, so that events of the other mode are refused."
    return [checks.Error(sentence, id="outbox.E005")]


def faults(*, key: str, base: str, timeouts: tuple[float, float], mode: str = "") -> list[checks.CheckMessage]:
    """Return what is wrong with how the provider is reached; `timeouts` in seconds, `mode` as web is told it, if it is."""
    found: list[checks.CheckMessage] = []
    if not key:
        found.append(checks.Error("STRIPE_API_KEY is not set: give the outbox worker the provider's key.", id="outbox.E001"))
    try:
        live.check_key(key, base)
    except live.LiveKeyElsewhere as error:
        found.append(checks.Error(str(error), id="outbox.E002"))
    if key and mode not in ("", live.mode(key)):
        found.append(checks.Error(f"STRIPE_MODE is {mode}, but STRIPE_API_KEY is a {live.mode(key)} key.", id="outbox.E004"))
    if sum(timeouts) * 2 >= leases.LEASE_SECONDS:
        sentence = f"STRIPE_TIMEOUTS must be less than half a lease together, which is {leases.LEASE_SECONDS} seconds."
        found.append(checks.Error(sentence, id="outbox.E003"))
    return found
