"""Which process is which: a pid is reused, so a process is its pid together with the time it was made."""

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Identity:
    """One process of this machine, for as long as the machine is up."""

    pid: int
    created: float


def of(pid: int) -> Identity | None:
    """Return the identity of the process that has this pid now, or None."""
    try:
        return Identity(pid=pid, created=psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def living(identity: Identity) -> psutil.Process | None:
    """Return the process if it still runs; a zombie does not, and neither does a newer process with its pid."""
    try:
        process = psutil.Process(identity.pid)
        same = abs(process.create_time() - identity.created) < 0.05
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def arguments(pid: int) -> list[str]:
    """Return the command line of a running process; empty when there is none, when it is a zombie or not ours to see."""
    try:
        process = psutil.Process(pid)
        return [] if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except psutil.Error:
        return []
