"""JSON files of an instance: readable by their owner only, and never half written."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from sandbox.servers import CannotStart


def read(file: Path) -> dict[str, Any]:
    """Return the file's content, or an empty mapping when there is none; raises CannotStart when it is no JSON."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise CannotStart(f"{file} is damaged: remove it, and the next start makes new secrets.") from None
    return found


def write(file: Path, content: dict[str, Any]) -> None:
    """Replace the file; a process that is killed meanwhile leaves the old one."""
    making = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(content, out, indent=2)
            out.flush()
            os.fsync(out.fileno())
        os.replace(making, file)
    finally:
        making.unlink(missing_ok=True)
