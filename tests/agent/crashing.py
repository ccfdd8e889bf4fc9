"""An agent worker in a process of its own that is killed at a fault point."""

import signal
from typing import Any
from uuid import UUID

from tests.agent import scripts, stopping

KILLED = -signal.SIGKILL


def run(thread: UUID, *script: Any, fault: str) -> int | None:
    """Drive the thread in a process that is killed at the fault, such as `run.taken:1`; return its exit code.

    None when it would not end. Faults before the last one have an action: `checkpoint.put:2:sleep,checkpoint.writes_done:1`.
    """
    from tests import forks  # a database of its own, which the killed process must not make again

    worker = forks.start(main, thread, script, env=stopping.environment(BACKSTOP_FAULT=f"{fault}:kill"))
    worker.join(60)
    return worker.exitcode


def main(thread: UUID, script: tuple[Any, ...]) -> None:
    """Drive the thread once."""
    from agent import driver

    driver.drive(thread, model=scripts.model(*script))
