"""How long a message waits after a try. Pure: the jitter comes from outside."""

BASE = 2.0  # seconds
CAP = 3600.0
LOOK_AGAIN = 3600.0  # for what the provider has and has not finished
# A destination's pause after the first time that it turned everybody away, and at most: seconds.
REFUSED = (15.0, 900.0)  # it does not know us, as with a wrong key: a person has to do something
SLOWED = (1.0, 300.0)  # we ask too often


def delay(*, attempt: int, jitter: float, floor: float | None = None) -> float:
    """Return seconds: full jitter below a doubling limit, never less than what the provider asked for.

    `attempt` counts from 1; `jitter` is in [0, 1).
    """
    limit = min(CAP, BASE * 2.0 ** min(attempt - 1, 20))
    return max(jitter * limit, min(floor or 0.0, CAP))


def pause(*, refusals: int, jitter: float, first: float, most: float, floor: float | None = None) -> float:
    """Return seconds for which a destination is left alone: it doubles with the refusals in a row, which count from 1.

    Half of it is chance, so that many relays do not come back together; never less than what the destination asked for.
    """
    limit = min(most, first * 2.0 ** min(refusals - 1, 20))
    return max(limit * (0.5 + jitter / 2), min(floor or 0.0, CAP))
