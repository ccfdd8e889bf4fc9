"""What `up` was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class Stopped(Exception):
    """Somebody asked to stop before everything was up."""


@dataclass(frozen=True)
class Wish:
    """What `up` was asked for; a port of None means the last one."""

    data: Path
    directory: Path
    host: str
    port: int | None
    demo: bool
    given: Mapping[str, str]

    def real(self, name: str) -> str:
        """Return the address or key of a real thing that the environment names, or nothing."""
        return self.given.get(name, "")
