"""An outbox worker in a process of its own that stops itself at a fault point and goes on when it is told to."""

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.outbox import crashing
from tests.outbox.provider import Provider
from tests.zombies import Zombie

LIMIT = "2s"  # of a transaction, so that a test need not wait for the login's own


@contextmanager
def worker(provider: Provider, *, fault: str, log: Path, hands: int = 0) -> Iterator[Zombie]:
    """Deliver what is due, once, and stop at the fault point; killed in the end, stopped or not. With `hands` so many at once."""
    with stopped(crashing.start(provider, fault=f"{fault}:stop", log=log, hands=hands, limit=LIMIT), log=log) as zombie:
        yield zombie


@contextmanager
def stopped(process: BaseProcess, *, log: Path) -> Iterator[Zombie]:
    """Wait until a process has stopped itself; it is killed in the end."""
    try:
        zombie = Zombie(process=process, log=log)
        zombie.wait_until_stopped()
        yield zombie
    finally:
        process.kill()
        process.join(10)
