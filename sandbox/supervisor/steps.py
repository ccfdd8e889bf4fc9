"""Management commands that the supervisor runs once, each in a process of its own and as the login that it needs."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sandbox.servers import CannotStart
from sandbox.supervisor.children import kill


def run(
    command: str,
    *,
    directory: Path,
    environment: Mapping[str, str],
    log: Path,
    stopping: Callable[[], bool],
    words: tuple[str, ...] = (),
) -> None:
    """Run `manage.py command`; raises CannotStart with the reason when it fails. Its output goes to the log."""
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "manage.py", command, *words],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=directory, env=dict(environment),
            start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None and not stopping():
                time.sleep(0.02)
        finally:
            if process.poll() is None:
                kill(process.pid)
                process.wait(timeout=10)
    if process.returncode and not stopping():
        raise CannotStart(f"`manage.py {command}` failed ({last_words(log)}): see {log}.")


def last_words(log: Path) -> str:
    """Return the last line of a log, without its full stop; raises CannotStart when it tells that the disk is full."""
    tail = log.read_text(errors="replace")[-4000:]
    if "No space left on device" in tail:
        raise CannotStart("The disk is full: free some space and start again.")
    return next((line.strip().removesuffix(".") for line in reversed(tail.splitlines()) if line.strip()), "it wrote nothing")
