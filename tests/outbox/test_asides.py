"""What is done beside deliveries: taken up by a bell, by so many threads at most, and again when one rings meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from outbox.asides import Aside
from tests.waiting import until


class Work:
    """Work that waits until it is let go on, and counts."""

    def __init__(self) -> None:
        self.begun, self.ended = 0, 0
        self.go = threading.Semaphore(0)

    def __call__(self) -> None:
        self.begun += 1
        self.go.acquire(timeout=10)
        self.ended += 1


@contextmanager
def aside(work: Callable[[], object], *, most: int = 1) -> Iterator[Aside]:
    made = Aside(work, name="test", most=most)
    try:
        yield made
    finally:
        made._threads.shutdown()


def test_whoever_rings_goes_at_once_and_nobody_rings_in_vain() -> None:
    work = Work()
    with aside(work) as made:
        made.ring()
        until(lambda: work.begun == 1)
        for _ in range(5):
            made.ring()
        work.go.release(2)
        until(lambda: work.ended == 2)  # all five bells together
    assert work.begun == 2


def test_so_many_threads_at_most_do_it() -> None:
    work = Work()
    with aside(work, most=2) as made:
        made.ring()
        until(lambda: work.begun == 1)
        made.ring()
        until(lambda: work.begun == 2)
        made.ring()
        assert work.begun == 2
        work.go.release(3)
        until(lambda: work.ended == 3)


@pytest.mark.parametrize(
    ("error", "said"), [(psycopg.OperationalError("gone"), "outbox.aside.missed"), (ValueError("x"), "outbox.aside.failed")]
)
def test_it_is_done_again_at_the_next_bell_when_it_failed(caplog: Any, error: Exception, said: str) -> None:
    results = iter([error, None])
    ended = threading.Event()

    def work() -> None:
        result = next(results)
        if result:
            raise result
        ended.set()

    with aside(work) as made:
        made.ring()
        until(lambda: said in caplog.text)
        made.ring()
        assert ended.wait(10)
