"""Take down an instance from another process, whether its supervisor is alive or was killed."""

import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sandbox.servers import CannotStart, identities, postgres, valkey
from sandbox.supervisor import children
from sandbox.supervisor.records import Record
from sandbox.supervisor.supervision import stop_servers

SECONDS = 60.0


def down(data: Path) -> bool:
    """Stop everything of the instance; say whether anything was running."""
    if not (data / "supervisor.lock").exists():
        return False
    record = Record.of(data)
    supervised = record.supervised()
    if supervised and record.supervisor:
        os.kill(record.supervisor.pid, signal.SIGTERM)
    with open(data / "supervisor.lock", "a") as lock:
        wait_for(lambda: locked(lock.fileno()) and not record.supervised())
        return clean(data) or supervised


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the supervisor has gone."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise CannotStart(f"The supervisor did not stop within {SECONDS:.0f} s: see its log.")
        time.sleep(0.02)


def locked(lock: int) -> bool:
    """Take the supervisor's lock if it has let go of it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def clean(data: Path) -> bool:
    """End what a killed supervisor left; say whether there was anything."""
    record = Record.of(data)
    left = any(identities.living(identity) for identity in record.children.values()) or servers_run(data)
    if left:
        children.end_left_over(record, seconds=10)
        stop_servers(data)
        record.state, record.supervisor = "down", None
        record.write()
    return left


def servers_run(data: Path) -> bool:
    """Say whether an embedded server of this directory runs."""
    database, broker = data / "postgres", data / "valkey"
    return bool(
        (database.exists() and postgres.Server(data=database).postmaster())
        or (broker.exists() and valkey.Server(data=broker).pid())
    )
