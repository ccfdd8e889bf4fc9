"""The keeper's look at all invariants while somebody has the page open, left in a small file for the web process.

The web login may not read all that the invariants ask for, and gets no right more: the keeper's worker, whose login may,
looks and writes down what it saw. It needs no broker, so that the strip goes on while the broker is down.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.utils import timezone

from ledger import connections, invariants
from ledger.invariants import Comparison, Finding
from sandbox.breaking import lifting

log = structlog.get_logger()

EVERY = 1.5  # seconds between two looks
WANTED = 10.0  # seconds for which one request of the page keeps the looks going
NAP = 0.25
SHOWN = 3  # rows of one broken invariant


def want() -> None:
    """Say that somebody looks at the page now."""
    _wanted().touch()


def last() -> dict[str, Any] | None:
    """Return what the keeper saw last, with its `age` in seconds; None before the first look."""
    try:
        found: dict[str, Any] = json.loads(_seen().read_text())
        return found | {"age": max(0.0, time.time() - _seen().stat().st_mtime)}
    except FileNotFoundError:
        return None


def begin() -> None:
    """Look from now on, beside the worker's own work, whenever it is wanted."""
    threading.Thread(target=_look_for_ever, name="lookout", daemon=True).start()


def _look_for_ever() -> None:
    conn: psycopg.Connection[Any] | None = None
    while True:
        time.sleep(NAP if _is_wanted() and _is_due() else 2 * NAP)
        lifting.lift_left()
        if not (_is_wanted() and _is_due()):
            continue
        try:
            conn = conn or psycopg.connect(settings.DATABASE_URL, connect_timeout=2, **connections.arguments())
            _write(look(conn))
        except psycopg.OperationalError:  # PostgreSQL is down, which the page sees by itself
            conn = None
        except Exception:
            log.exception("sandbox.look.failed")
            conn = None
            time.sleep(5)


def look(conn: "psycopg.Connection[Any]") -> dict[str, Any]:
    """Return what holds and what does not, as JSON can say it; `conn` is in autocommit mode, as the keeper."""
    found, compared = invariants.examine(conn), invariants.compare(conn)
    return {
        "at": timezone.now().isoformat(),
        "checked": len(found),
        "broken": [_broken(one) for one in found if not one.holds],
        "provider": _compared(compared),
    }


def _broken(found: Finding) -> dict[str, Any]:
    rows = [{name: str(value) for name, value in row.items()} for row in found.rows[:SHOWN]]
    return {"name": found.invariant.name, "says": found.invariant.says, "count": found.count, "rows": rows, "error": found.error}


def _compared(found: Comparison) -> dict[str, Any]:
    return {
        "compared": found.compared,
        "says": found.says,
        "sums": {currency: dict(sums) for currency, sums in found.sums.items()},
        "broken": [violation.name for violation in found.violations],
    }


def _write(content: dict[str, Any]) -> None:
    """Replace the file as a whole; it need not outlive a power cut."""
    making = _seen().with_suffix(".new")
    making.write_text(json.dumps(content))
    os.replace(making, _seen())


def _is_wanted() -> bool:
    return _age(_wanted()) < WANTED


def _is_due() -> bool:
    return _age(_seen()) >= EVERY


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _wanted() -> Path:
    return settings.DATA_DIR / "run" / "look-wanted"


def _seen() -> Path:
    return settings.DATA_DIR / "run" / "look.json"
