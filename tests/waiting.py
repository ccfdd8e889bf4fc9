"""Wait for a condition instead of sleeping for a while and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(condition: Callable[[], Found], *, seconds: float = 10, every: float = 0.02, what: str = "the condition") -> Found:
    """Return the condition's first true value, asked again and again; fails when the time is over."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {seconds:g} s; last seen: {found!r}")
        time.sleep(every)
    return found
