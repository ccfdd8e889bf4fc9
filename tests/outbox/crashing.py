"""An outbox worker in a process of its own, killed at a chosen point: before or after the n-th call of a function.

python -m tests.outbox.crashing POINT     where POINT is `outbox.gateway:post:after:1`, or `never`
"""

import os
import subprocess
import sys
from typing import Any

from tests.agent.crashing import KILLED, die_at
from tests.outbox.provider import API_KEY, Provider

__all__ = ["KILLED", "start"]


def start(provider: Provider, *, point: str = "never") -> "subprocess.Popen[bytes]":
    """Start a worker that delivers what is due, once, and is killed at the point."""
    from tests import databases, plugin  # a database of its own, which the killed process must not make again

    environment = os.environ | {
        "DATABASE_URL": databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="outbox"),
        "BACKSTOP_LOGIN": "outbox",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "STRIPE_API_KEY": API_KEY,
        "STRIPE_API_BASE": provider.base,
    }
    command = [sys.executable, "-m", "tests.outbox.crashing", point]
    return subprocess.Popen(command, env=environment, cwd=databases.BASE, stderr=subprocess.DEVNULL)


def main(point: str) -> None:
    """Deliver what is due."""
    import django

    django.setup()
    from ledger import connections
    from outbox import relay

    if point != "never":
        die_at(point)
    done: Any = relay.drain(connections.pool(), go_on=lambda: True, wake=lambda: None)
    connections.pool().close()
    sys.exit(bool(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
