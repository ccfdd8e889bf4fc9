"""Handing a part one fault (see ledger/faults.py): for its next start only, so that the one after it heals."""

import os
from pathlib import Path

VARIABLE = "BACKSTOP_FAULT"


def arm(data: Path, *, part: str, fault: str) -> None:
    """Keep a fault for the next start of the part; another one that waits is replaced."""
    _file(data, part).write_text(fault)


def disarm(data: Path, *, part: str) -> None:
    """Forget the fault that waits for the part, if one does."""
    _file(data, part).unlink(missing_ok=True)


def take(data: Path, *, part: str, first: bool) -> dict[str, str]:
    """Return the variable for a start of the part: what was armed, else, at its first start, the supervisor's own."""
    file = _file(data, part)
    armed = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    found = armed or (os.environ.get(VARIABLE, "") if first else "")
    return {VARIABLE: found} if found else {}


def _file(data: Path, part: str) -> Path:
    return data / "run" / f"fault-{part}"
