"""Keep processes that start the same thing at once from getting into each other's way."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Hold the file's lock; waits for whoever holds it, and a holder that dies lets go."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
