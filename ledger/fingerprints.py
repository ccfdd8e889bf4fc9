"""The fingerprint of a call: what makes two requests the same request."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(*, tool: str, arguments: dict[str, Any]) -> bytes:
    """Return the SHA-256 of a tool's name and its validated arguments."""
    return hashlib.sha256(canonical([tool, arguments]).encode()).digest()
