"""An agent worker in a process of its own that is killed at a chosen point: before or after the n-th call of a function.

A point is `agent.batch:run_batch:after:1`, or `never`. With another signal it is stopped there, say, and can go on.
"""

import os
import signal
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any
from uuid import UUID

KILLED = -signal.SIGKILL


def run(thread: UUID, *script: Any, point: str = "never") -> int | None:
    """Drive the thread in a process that is killed at the point; return its exit code, None when it would not end."""
    from tests import databases, forks, plugin  # a database of its own, which the killed process must not make again

    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
    worker = forks.start(main, thread, script, point, env=os.environ | {"DATABASE_URL": address, "BACKSTOP_LOGIN": "agent"})
    worker.join(60)
    return worker.exitcode


def die_at(point: str, *, by: int = signal.SIGKILL) -> None:
    """Make this process send itself the signal at the point."""
    module, path, when, number = point.split(":")
    target: Any = import_module(module)
    *owners, name = path.split(".")
    for owner in owners:
        target = getattr(target, owner)
    setattr(target, name, _deadly(getattr(target, name), when=when, left=int(number), by=by))


def _deadly(function: Callable[..., Any], *, when: str, left: int, by: int) -> Callable[..., Any]:
    @wraps(function)
    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), by)
        found = function(*args, **kwargs)
        if left == 0:
            os.kill(os.getpid(), by)
        return found

    return deadly


def main(thread: UUID, script: tuple[Any, ...], point: str) -> None:
    """Drive the thread once."""
    from agent import driver
    from tests.agent import scripts

    if point != "never":
        die_at(point)
    driver.drive(thread, model=scripts.model(*script))
