"""Take down an instance from another process, whether its supervisor is alive or was killed."""

import fcntl
import os
import signal
import time
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
        wait_for(lock.fileno())
        return clean(data) or supervised


def wait_for(lock: int) -> None:
    """Wait until the supervisor has let go of its lock."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
    raise CannotStart(f"The supervisor did not stop within {SECONDS:.0f} s: see its log.")


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
