"""Agent workers that stop themselves at a fault point or in a call of the model."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from tests.agent.scripts import Scripted
from tests.zombies import Zombie


@contextmanager
def worker(
    thread: UUID, *script: Any, fault: str = "", behind: float = 0, limit: str = "2s", log: Path, **more: str
) -> Iterator[Zombie]:
    """Drive the thread once in a process whose clock is `behind` by some seconds; kill it in the end, stopped or not.

    `limit` is how long its transactions may take, so that a test need not wait for the login's own limit; "" leaves that.
    """
    from tests import forks

    env = environment(limit=limit, BACKSTOP_FAULT=fault, **more)
    process = forks.start(main, thread, script, behind, env=env, log=log)
    try:
        yield Zombie(process=process, log=log)
    finally:
        process.kill()
        process.join(10)


def environment(*, limit: str = "", **more: str) -> dict[str, str]:
    """Return the environment of an agent worker."""
    from tests import databases, plugin  # a database of its own, which the process must not make again

    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
    if limit:
        address += f"&options={quote(f'-c transaction_timeout={limit}')}"
    return os.environ | {"DATABASE_URL": address, "BACKSTOP_LOGIN": "agent", **more}


def main(thread: UUID, script: tuple[Any, ...], behind: float) -> None:
    """Drive the thread once, and log how that ended."""
    import structlog

    from agent import driver
    from tests.agent import scripts

    if behind:
        go_back(behind)
    ended = driver.drive(thread, model=scripts.model(*script))
    structlog.get_logger().info("tests.worker.ended", outcome=ended)


def go_back(seconds: float) -> None:
    """Let this process's clock be behind: what Python reads of it, which all ids of checkpoints are made from."""
    import time

    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() - seconds
    time.time_ns = lambda: real_ns() - int(seconds * 1e9)


def stops(*script: Any) -> Any:
    """Return a reply of a model that stops its process before it answers; it can be sent to another process."""
    return Stopping(script)


class Stopping:
    """A reply that comes after the process was stopped and went on."""

    def __init__(self, script: tuple[Any, ...]) -> None:
        self.script = script

    def __call__(self, messages: Any) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGSTOP)
        return Scripted(script=list(self.script))._reply(messages)
