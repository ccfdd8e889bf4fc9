"""What a worker does beside delivering, in threads of its own: a provider that does not answer keeps no delivery waiting."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from ledger import connections

log = structlog.get_logger()


class Aside:
    """Work that is taken up when it is rung for, by at most so many threads; a bell meanwhile lets those look again."""

    def __init__(self, work: Callable[[], object], *, name: str, most: int = 1) -> None:
        self._work = work
        self._threads = ThreadPoolExecutor(most, thread_name_prefix=f"outbox-{name}")
        self._room = threading.BoundedSemaphore(most)
        self._rung = threading.Event()
        self._name = name

    def ring(self) -> None:
        """Have it taken up, and go at once."""
        self._rung.set()
        if self._room.acquire(blocking=False):
            self._threads.submit(self._look)

    def _look(self) -> None:
        try:
            while self._rung.is_set():
                self._rung.clear()
                self._work()
        except connections.AWAY as error:
            log.warning("outbox.aside.missed", name=self._name, error=type(error).__name__)
        except Exception:
            log.exception("outbox.aside.failed", name=self._name)
        finally:
            self._room.release()
        if self._rung.is_set():  # between the last look and this line
            self.ring()
