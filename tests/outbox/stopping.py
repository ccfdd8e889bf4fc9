"""An outbox worker in a process of its own that stops itself at a fault point and goes on when it is told to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.outbox import crashing
from tests.outbox.provider import API_KEY, Provider
from tests.zombies import Zombie


@contextmanager
def worker(provider: Provider, *, fault: str, log: Path) -> Iterator[Zombie]:
    """Deliver what is due, once, and stop at the fault point; killed in the end, stopped or not."""
    from tests import databases, forks, plugin  # a database of its own, which the process must not make again

    environment = os.environ | {
        "DATABASE_URL": databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="outbox"),
        "BACKSTOP_LOGIN": "outbox",
        "BACKSTOP_FAULT": f"{fault}:stop",
        "STRIPE_API_KEY": API_KEY,
        "STRIPE_API_BASE": provider.base,
    }
    process = forks.start(crashing.main, "never", env=environment, log=log)
    try:
        zombie = Zombie(process=process, log=log)
        zombie.wait_until_stopped()
        yield zombie
    finally:
        process.kill()
        process.join(10)
