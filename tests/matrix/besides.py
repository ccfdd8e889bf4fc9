"""What workers do beside conversations, each in a process of its own that dies at a fault point."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests import forks
from tests.outbox import crashing, stopping
from tests.outbox.provider import Provider
from tests.zombies import Zombie


def dies(work: Callable[..., None], *arguments: Any, at: str, provider: Provider, login: str = "outbox") -> bool:
    """Do the work in a process that kills itself where it first comes by a point; return whether it came there."""
    environment = crashing.environment_of(provider, fault=f"{at}:1:kill", login=login)
    return crashing.end(forks.start(work, *arguments, env=environment)) == crashing.KILLED


@contextmanager
def stops(work: Callable[..., None], *, at: str, provider: Provider, log: Path) -> Iterator[Zombie]:
    """Do the outbox worker's work in a process that stops itself where it first comes by a point."""
    process = forks.start(work, env=crashing.environment_of(provider, fault=f"{at}:1:stop", limit=stopping.LIMIT), log=log)
    with stopping.stopped(process, log=log) as zombie:
        yield zombie


def ask(message: int, kind: str) -> None:
    """Record what a person asks, and ring, as a page does."""
    from ledger import connections
    from outbox import requests

    with connections.writing() as conn:
        requests.ask(conn, message=message, kind=kind, reason="the customer called", user=7)
    requests.announce()


def carry_out() -> None:
    """Do what people asked."""
    from ledger import connections
    from outbox import requests

    with connections.pool().connection() as conn:
        requests.carry_out(conn)


def resume() -> None:
    """Let parked destinations be tried that people want to be tried."""
    from ledger import connections
    from outbox import breakers

    with connections.pool().connection() as conn:
        breakers.resume(conn)


def scan() -> None:
    """Carry out the scans that are asked for or due, of everything but the provider's objects."""
    from escalations.reconciling import scanning
    from ledger import connections

    with connections.pool().connection() as conn:
        scanning.work(conn, get=None)


def expire() -> None:
    """Decide for want of a person."""
    from agent import expiry
    from ledger import connections

    with connections.pool().connection() as conn:
        expiry.expire(conn)


def prune(chunk: int) -> None:
    """Let old messages go, some at a time."""
    from django.utils import timezone

    from ledger import connections
    from outbox import pruning

    pruning.CHUNK = chunk
    with connections.pool().connection() as conn:
        pruning.prune(conn, before=timezone.now() - timedelta(days=400))


def deliver() -> None:
    """Deliver what is due."""
    crashing.main()
