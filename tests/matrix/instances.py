"""An instance whose parts are armed and killed: which process does a part's work, and what its log says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from sandbox.servers import identities
from sandbox.supervisor import environments
from sandbox.supervisor.records import Record
from tests import numbers
from tests import stack as stacks
from tests.stack import Stack
from tests.waiting import until

LONG = 90  # seconds for a part to come up on a machine that does other things too
NEVER = "send.settled:1000000:kill"  # armed with it, a process logs where it comes by and lives
# Whoever stands at a point stands there until the process is killed.
ENVIRONMENT = {
    "BACKSTOP_FAULT": NEVER,
    "BACKSTOP_FAULT_SECONDS": "900",
    "BACKSTOP_OFFLINE_TOKEN_MS": "0",
    "BACKSTOP_LEASE_SECONDS": "21",  # the shortest: each wave waits until the one before was taken over
}


def up(data: Path) -> Stack:
    """Start the instance; its two customers may be asked for the same again and again."""
    running = stacks.up(data, **ENVIRONMENT)
    with running.connect("owner") as conn:
        numbers.allow_repeats(conn)
    return running


def kill(stack: Stack, part: str) -> None:
    """Kill a part as a person would; the supervisor starts it again."""
    process = identities.living(Record.of(stack.data).children[part])
    if process:
        process.kill()


def until_armed(stack: Stack, part: str) -> None:
    """Wait until a process works that has taken the fault; one that started before it was armed is killed."""
    until_works(stack, part)
    if _is_armed_later(stack, part):
        kill(stack, part)
    until(lambda: not _is_armed_later(stack, part), seconds=LONG, what=f"the start of {part}")
    until_works(stack, part)


def until_works(stack: Stack, part: str) -> None:
    """Wait until the part works."""
    until(lambda: _works(stack, part), seconds=LONG, what=f"{part}")


def _is_armed_later(stack: Stack, part: str) -> bool:
    return (stack.data / "run" / f"fault-{part}").exists()


def _works(stack: Stack, part: str) -> bool:
    process = identities.living(Record.of(stack.data).children[part])
    if process is None:
        return False
    if part != "web":
        file = environments.ready_file(stack.data, part)
        return file.exists() and file.read_text() == str(process.pid)
    try:
        return httpx.get(f"{stack.address}/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


class Log:
    """A part's log from now on."""

    def __init__(self, stack: Stack, part: str) -> None:
        self._file: Path = stack.data / "logs" / f"{part}.log"
        self._from = self._file.stat().st_size

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what was logged under a name."""
        return [line for line in self._lines() if line.get("event") == name]

    def _lines(self) -> Iterator[dict[str, Any]]:
        with open(self._file, "rb") as file:
            file.seek(self._from)
            for line in file.read().splitlines():
                if line.startswith(b"{") and line.endswith(b"}"):
                    yield json.loads(line)


class Provider:
    """What the Stripe sandbox of an instance says about itself."""

    def __init__(self, stack: Stack) -> None:
        self._base, self._key = stack.provider, {"Authorization": f"Bearer {stack.content['stripe']['api_key']}"}

    def movements(self) -> list[dict[str, Any]]:
        """Return what moved, from its own log."""
        return self._listed("money", "movements")

    def undelivered(self) -> list[str]:
        """Return the events that it still sends."""
        return [item["event"] for item in self._listed("webhooks", "deliveries") if item["state"] == "waiting"]

    def _listed(self, path: str, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{self._base}/_sandbox/{path}", headers=self._key).json()[name]
        return found
