"""How long a message waits after a try. Pure: the jitter comes from outside."""

BASE = 2.0  # seconds
CAP = 3600.0
LOOK_AGAIN = 3600.0  # for what the provider has and has not finished
PARKED = 60.0  # while the provider refuses us, as with a wrong key


def delay(*, attempt: int, jitter: float, floor: float | None = None) -> float:
    """Return seconds: full jitter below a doubling limit, never less than what the provider asked for.

    `attempt` counts from 1; `jitter` is in [0, 1).
    """
    limit = min(CAP, BASE * 2.0 ** min(attempt - 1, 20))
    return max(jitter * limit, min(floor or 0.0, CAP))
