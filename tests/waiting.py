"""Wait for a condition instead of sleeping for a while and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
LONGEST = 0.2  # seconds between two looks: whatever is waited for has the processor


def until(condition: Callable[[], Found], *, seconds: float = 10, every: float = 0.02, what: str = "the condition") -> Found:
    """Return the condition's first true value, asked again and again, seldomer by and by; fails when the time is over."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {seconds:g} s; last seen: {found!r}")
        time.sleep(every)
        every = max(every, min(every * 1.1, LONGEST))
    return found
