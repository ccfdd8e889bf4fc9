"""Which key may be sent where. Free of the provider's library, so that every process can ask."""

LIVE_BASE = "https://api.stripe.com"


class LiveKeyElsewhere(Exception):
    """A live key may only be sent to Stripe itself."""


def is_live(key: str) -> bool:
    """Return whether the key moves real money."""
    return key.startswith(("sk_live_", "rk_live_"))


def mode(key: str) -> str:
    """Return the mode that the key is of, `live` or `test`, as settings.STRIPE_MODE has it for processes without the key."""
    return "live" if is_live(key) else "test"


def check_key(key: str, base: str) -> None:
    """Raise LiveKeyElsewhere for a live key with an address that is not Stripe's."""
    if is_live(key) and base.rstrip("/") != LIVE_BASE:
        raise LiveKeyElsewhere(f"STRIPE_API_KEY is a live key, but STRIPE_API_BASE is {base}: it is only sent to {LIVE_BASE}.")
