"""What `manage.py up` wrote about the running instance: addresses and secrets of one data directory."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

BASE = Path(__file__).resolve().parent.parent


def data_directory() -> Path:
    """Return the directory that `BACKSTOP_DATA` names, else `var/` beside the code."""
    return Path(os.environ.get("BACKSTOP_DATA") or BASE / "var").expanduser().absolute()


def file() -> Path:
    """Return the path of the instance file; it holds secrets and is readable by its owner only."""
    return data_directory() / "instance.json"


@cache
def read() -> dict[str, Any]:
    """Return the instance file's content, or an empty mapping when nothing was ever started here."""
    return json.loads(file().read_text()) if file().exists() else {}


def value(*path: str) -> str | None:
    """Return one entry, such as `value("database", "web")`, or None."""
    found: Any = read()
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found
