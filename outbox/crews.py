"""Delivering several messages at once: one thread claims for all, as many as there are hands free, and each is carried by one.

A process has one crew. Whoever hears a bell while its crew is at work lets it look again, and goes.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import psycopg
import structlog
from psycopg import Connection
from psycopg_pool import ConnectionPool

from outbox import breakers, finishing, handlers, relay
from outbox.leases import Row

Pool = ConnectionPool[Connection[Any]]
log = structlog.get_logger()

HANDS = 8  # calls that a process makes at once to one destination: one that hangs keeps no other waiting
GATHER = 0.003  # seconds for more hands to come free while more is due than they hold: one commit then serves them all
PATIENCE = 5.0  # seconds: for a destination that opens sooner the crew waits, for another one the next bell rings


class Crew:
    """Threads that carry messages, kept from call to call, because each has its connection to the provider."""

    def __init__(self, *, hands: int = HANDS) -> None:
        self.hands = hands
        self._threads = ThreadPoolExecutor(hands * len(handlers.destinations()), thread_name_prefix="outbox")
        self._together = finishing.Together()
        self._claiming = threading.Lock()
        self._changed = threading.Event()  # a bell was rung, or a hand is free
        self._rung = False
        self._busy = Counter[str]()  # by destination
        self._counting = threading.Lock()

    def work(self, pool: Pool, *, go_on: Callable[[], bool], wake: Callable[[], object]) -> None:
        """Deliver until nothing is due or `go_on` says no; return at once if another thread does it, which looks again.

        `wake` is called once when there is more than this crew's hands can hold.
        """
        self._rung = True
        self._changed.set()
        while self._rung and self._claiming.acquire(blocking=False):
            try:
                self._work(pool, go_on, wake)
            finally:
                self._wait_for_hands()
                self._claiming.release()
            if not go_on():
                return

    def _work(self, pool: Pool, go_on: Callable[[], bool], wake: Callable[[], object]) -> None:
        """Claim whenever something may be due and a hand is free."""
        woken = full = False
        wait: float | None = 0.0
        while wait is not None and go_on():
            self._changed.wait(wait)
            if full:
                time.sleep(GATHER)
            self._changed.clear()
            self._rung = False
            rooms = self._rooms()
            taken = relay.take(pool, rooms=rooms) if any(rooms.values()) else []
            for message in taken:
                self._hand_over(pool, message)
            full = _is_full(taken, rooms)
            if full and not woken:
                wake()
                woken = True
            wait = self._until_next(pool, taken=len(taken))

    def _rooms(self) -> dict[str, int]:
        """Return how many hands are free for each destination."""
        with self._counting:
            return {name: self.hands - self._busy[name] for name in handlers.destinations()}

    def _until_next(self, pool: Pool, *, taken: int) -> float | None:
        """Return seconds to wait for a change, or None when all is done."""
        if self._at_work():
            return PATIENCE
        if taken or self._rung:
            return 0.0
        with pool.connection() as conn:
            opens = breakers.opens_in(conn)
        return None if opens is None or opens > PATIENCE else max(opens, 0.02)

    def _hand_over(self, pool: Pool, message: Row) -> None:
        with self._counting:
            self._busy[message["destination"]] += 1
        self._threads.submit(self._carry, pool, message)

    def _carry(self, pool: Pool, message: Row) -> None:
        try:
            relay.deliver(pool, message, finish=self._together.finish)
        except psycopg.OperationalError as error:  # its lease runs out; if the database is away, claiming says so
            log.warning("outbox.message.left", message=message["id"], error=type(error).__name__)
        finally:
            with self._counting:
                self._busy[message["destination"]] -= 1
            self._changed.set()

    def _at_work(self) -> bool:
        with self._counting:
            return self._busy.total() > 0

    def _wait_for_hands(self) -> None:
        while self._at_work():
            self._changed.wait(PATIENCE)
            self._changed.clear()


def _is_full(taken: list[Row], rooms: Mapping[str, int]) -> bool:
    """Return whether a destination filled all of its hands: more of it may be due."""
    claimed = Counter(message["destination"] for message in taken)
    return any(count == rooms[name] for name, count in claimed.items())


@cache
def crew() -> Crew:
    """Return this process's crew."""
    return Crew()
