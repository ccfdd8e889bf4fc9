"""The limiter that stands in front of everything: so many calls a second, of all and of each endpoint; off until it is set."""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.stripe import routes
from sandbox.stripe.exchange import Call
from sandbox.stripe.refusals import Refused

WINDOW = 1.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How many calls a second are let through; None is no limit. Stripe's are 100 and 25, in its test mode 25 and 25."""

    per_second: int | None = None
    per_endpoint: int | None = None


class Limiter:
    """Counts the calls that it let through in the last second; what it refuses counts for nothing."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._limit = Limit()
        self._passed: dict[str, deque[float]] = defaultdict(deque)
        self.refused = 0

    @property
    def limit(self) -> Limit:
        """Return the limit in force."""
        return self._limit

    def set(self, limit: Limit) -> None:
        """Put a limit in force and begin to count anew."""
        with self._lock:
            self._limit, self.refused = limit, 0
            self._passed.clear()

    def lets_through(self, call: Call) -> bool:
        """Return whether a call may pass now, and count it."""
        if self._limit == Limit():
            return True
        bounds = {"": self._limit.per_second, endpoint(call): self._limit.per_endpoint}
        with self._lock:
            if any(bound is not None and self._recent(name) >= bound for name, bound in bounds.items()):
                self.refused += 1
                return False
            for name in bounds:
                self._passed[name].append(self._clock())
        return True

    def _recent(self, name: str) -> int:
        passed, since = self._passed[name], self._clock() - WINDOW
        while passed and passed[0] <= since:
            passed.popleft()
        return len(passed)


def endpoint(call: Call) -> str:
    """Return the name of a call's endpoint, which is the same for every id in its path."""
    try:
        return f"{call.method} {routes.find(call.method, call.path)[0].path.pattern}"
    except Refused:
        return f"{call.method} {call.path}"
