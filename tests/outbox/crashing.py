"""An outbox worker in a process of its own, killed at a chosen point: before or after the n-th call of a function.

A point is `outbox.gateway:post:after:1`, or `never`.
"""

import os
import sys
from multiprocessing.process import BaseProcess
from typing import Any

from tests.agent.crashing import KILLED, die_at
from tests.outbox.provider import API_KEY, Provider

__all__ = ["KILLED", "end", "start"]


def start(provider: Provider, *, point: str = "never") -> BaseProcess:
    """Start a worker that delivers what is due, once, and is killed at the point."""
    from tests import databases, forks, plugin  # a database of its own, which the killed process must not make again

    environment = os.environ | {
        "DATABASE_URL": databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="outbox"),
        "BACKSTOP_LOGIN": "outbox",
        "STRIPE_API_KEY": API_KEY,
        "STRIPE_API_BASE": provider.base,
    }
    return forks.start(main, point, env=environment)


def end(worker: BaseProcess, *, seconds: float = 40) -> int | None:
    """Wait for the worker's end and return its exit code; None when it would not end."""
    worker.join(seconds)
    return worker.exitcode


def main(point: str) -> None:
    """Deliver what is due."""
    from ledger import connections
    from outbox import relay

    if point != "never":
        die_at(point)
    done: Any = relay.drain(connections.pool(), go_on=lambda: True, wake=lambda: None)
    connections.pool().close()
    sys.exit(bool(done))
