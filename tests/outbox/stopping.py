"""An outbox worker in a process of its own that stops itself at a fault point and goes on when it is told to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.outbox import crashing
from tests.outbox.provider import Provider
from tests.zombies import Zombie


@contextmanager
def worker(provider: Provider, *, fault: str, log: Path) -> Iterator[Zombie]:
    """Deliver what is due, once, and stop at the fault point; killed in the end, stopped or not."""
    process = crashing.start(provider, fault=f"{fault}:stop", log=log)
    try:
        zombie = Zombie(process=process, log=log)
        zombie.wait_until_stopped()
        yield zombie
    finally:
        process.kill()
        process.join(10)
