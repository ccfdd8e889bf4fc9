"""An outbox worker in a process of its own that something happens to at a fault point, such as `send.answered:1:kill`."""

import os
import signal
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.outbox.provider import API_KEY, Provider

KILLED = -signal.SIGKILL


def start(provider: Provider, *, fault: str = "", log: Path | None = None, hands: int = 0, limit: str = "") -> BaseProcess:
    """Start a worker that delivers what is due, once, with a fault; with `hands` so many at once."""
    from tests import forks

    environment = environment_of(provider, fault=fault, limit=limit)
    return forks.start(together, hands, env=environment, log=log) if hands else forks.start(main, env=environment, log=log)


def environment_of(provider: Provider, *, fault: str = "", login: str = "outbox", limit: str = "") -> dict[str, str]:
    """Return the environment of a worker; `limit` is how long its transactions may take, where the login's own is too long."""
    from tests import databases, plugin  # a database of its own, which the killed process must not make again

    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)
    return os.environ | {
        "DATABASE_URL": address + (f"&options={quote(f'-c transaction_timeout={limit}')}" if limit else ""),
        "BACKSTOP_LOGIN": login,
        "BACKSTOP_FAULT": fault,
        "STRIPE_API_KEY": API_KEY if login == "outbox" else "",
        "STRIPE_API_BASE": provider.base,
    }


def end(worker: BaseProcess, *, seconds: float = 40) -> int | None:
    """Wait for the worker's end and return its exit code; None when it would not end."""
    worker.join(seconds)
    return worker.exitcode


def main() -> None:
    """Deliver what is due."""
    from ledger import connections
    from outbox import relay

    done: Any = relay.drain(connections.pool(), go_on=lambda: True, wake=lambda: None)
    connections.pool().close()
    sys.exit(bool(done))


def together(hands: int) -> None:
    """Deliver what is due, several at once."""
    from ledger import connections
    from outbox import crews

    crews.Crew(hands=hands).work(connections.pool(), go_on=lambda: True, wake=lambda: None)
    connections.pool().close()
