"""Start, stop and restart one process of an instance."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil

from sandbox.servers import identities
from sandbox.supervisor import injections
from sandbox.supervisor.parts import Part
from sandbox.supervisor.records import Record

# The shell waits for a word before it becomes the program: a supervisor that dies before it has written down the new
# process never says it, and leaves nothing behind.
WAIT = 'read -r go && exec "$@"'
LONGEST_PAUSE = 30.0
STEADY = 10.0  # seconds, longer than any part takes to come up


class Child:
    """One part while it is supervised."""

    def __init__(self, part: Part, *, data: Path, directory: Path, record: Record) -> None:
        self.part, self.data, self.directory, self.record = part, data, directory, record
        self.log = data / "logs" / f"{part.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.failures = 0
        self.came_up = False

    def start(self) -> None:
        """Start the process; it is in the record before it does anything."""
        environment = self._environment()
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", WAIT, "sh", *self.part.command],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.directory, env=environment,
                start_new_session=True,
            )  # fmt: skip
        self.process, self.started, self.came_up = process, time.monotonic(), False
        if process.stdin and (identity := identities.of(process.pid)):
            self.record.children[self.part.name] = identity
            self.record.write()
            process.stdin.write(b"go\n")
            process.stdin.close()

    def _environment(self) -> dict[str, str]:
        return self.part.environment | injections.take(self.data, part=self.part.name, first=self.process is None)

    def ready(self) -> bool:
        """Say whether the part works; once it did, this process has come up."""
        works = self.process is not None and self.process.poll() is None and self.part.ready(self.process.pid)
        self.came_up = self.came_up or works
        return works

    def ended(self) -> int | None:
        """Return the exit code of a process that has ended, or None."""
        return self.process.poll() if self.process else None

    def revive(self) -> bool:
        """Start the process again if it has ended and has been given a pause; say whether that happened."""
        if self.ended() is None:
            return False
        lasted = time.monotonic() - self.started
        pause = min(LONGEST_PAUSE, 0.5 * 2.0 ** min(self.failures, 10))
        if lasted < pause:
            return False
        self.failures = 0 if self.came_up or lasted > STEADY else self.failures + 1  # killed later, it starts without delay
        self.record.restarts[self.part.name] = self.record.restarts.get(self.part.name, 0) + 1
        self.start()
        return True

    def tell_to_stop(self) -> None:
        """Ask the process to end."""
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def wait(self, *, deadline: float) -> None:
        """Wait until the process has ended; past the deadline (monotonic) it and what it started are killed."""
        if not self.process:
            return
        try:
            self.process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            kill(self.process.pid)
            self.process.wait(timeout=10)
        self.record.children.pop(self.part.name, None)


def stop_all(children: list[Child]) -> None:
    """End the processes together, each within its own patience."""
    now = time.monotonic()
    for child in children:
        child.tell_to_stop()
    for child in children:
        child.wait(deadline=now + child.part.patience)


def kill(pid: int) -> None:
    """Kill a process that leads a session of its own, and everything in it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_left_over(record: Record, *, seconds: float = 5) -> list[str]:
    """End what a supervisor that is no more has left running, and return the names."""
    left = {name: process for name, identity in record.children.items() if (process := identities.living(identity))}
    for process in left.values():
        process.terminate()
    _, stubborn = psutil.wait_procs(list(left.values()), timeout=seconds)
    for process in stubborn:
        kill(process.pid)
    psutil.wait_procs(stubborn, timeout=5)
    record.children.clear()
    return sorted(left)
