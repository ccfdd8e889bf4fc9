"""An instance whose parts are armed and killed: which process does a part's work, and what its log says."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from sandbox.supervisor import environments
from sandbox.supervisor.records import Record
from tests.stack import Stack
from tests.waiting import until

LONG = 90  # seconds for a part to come up on a machine that does other things too
NEVER = "send.settled:1000000:kill"  # armed with it, a process logs where it comes by and lives
ENVIRONMENT = {"BACKSTOP_FAULT": NEVER, "BACKSTOP_OFFLINE_TOKEN_MS": "0"}


def kill(stack: Stack, part: str) -> None:
    """Kill a part as a person would; the supervisor starts it again."""
    os.kill(pid(stack, part), signal.SIGKILL)


def pid(stack: Stack, part: str) -> int:
    """Return the process that the supervisor keeps for the part, whether it works yet or not."""
    return Record.of(stack.data).children[part].pid


def starts(stack: Stack, part: str) -> int:
    """Return how often the part was started again."""
    return Record.of(stack.data).restarts.get(part, 0)


def until_ready(stack: Stack, part: str, *, start: int) -> None:
    """Wait until the start of this number, or a later one, does the part's work."""
    until(lambda: starts(stack, part) >= start and _works(stack, part), seconds=LONG, what=f"start {start} of {part}")


def _works(stack: Stack, part: str) -> bool:
    if part == "web":
        try:
            return httpx.get(f"{stack.address}/healthz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False
    file = environments.ready_file(stack.data, part)
    return file.exists() and file.read_text() == str(pid(stack, part))


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
