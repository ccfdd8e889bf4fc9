"""Why a rule holds a call, as the reviewer sees it: measured and allowed side by side, in words and as a drawing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from escalations import questions
from escalations.limits import Setting

WIDTH = 200  # units of the drawing


@dataclass(frozen=True, kw_only=True)
class Gauge:
    """Measured and allowed as lengths of a drawing that is `WIDTH` wide."""

    measured: float
    allowed: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Why a rule holds one call."""

    call_number: int
    rule: str
    name: str
    version: str
    sentence: str
    measured: str
    allowed: str
    over_by: str
    gauge: Gauge | None
    refuses: bool  # nobody may allow it, only another call can
    setting: Setting | None  # who set the number; None: the default in code
    checked_at: datetime | None


def of(row: Mapping[str, Any], *, setting: Setting | None = None, checked_at: datetime | None = None) -> Verdict:
    """Return a stored verdict as the page shows it."""
    measured, allowed = row.get("measured"), row.get("allowed")
    known = isinstance(measured, int) and isinstance(allowed, int)
    return Verdict(
        call_number=row.get("call_index", 0) + 1,
        rule=str(row.get("rule", "")),
        name=questions.rule(row),
        version=str(row.get("version", "")),
        sentence=str(row.get("sentence", "")),
        measured=questions.value(row, "measured"),
        allowed=questions.value(row, "allowed"),
        over_by=questions.value({**row, "measured": measured - allowed}, "measured") if known else "",  # type: ignore[operator]
        gauge=gauge(measured=measured, allowed=allowed) if known else None,  # type: ignore[arg-type]
        refuses=row.get("action") == "refuse",
        setting=setting,
        checked_at=checked_at,
    )


def version(row: Mapping[str, Any]) -> int:
    """Return the version of the number that was measured against; 0 is the default in code."""
    found = str(row.get("version") or 0)
    return int(found) if found.isdecimal() else 0


def gauge(*, measured: int, allowed: int) -> Gauge | None:
    """Return both numbers on one scale that leaves room to the right of the larger one."""
    whole = max(measured, allowed) * 1.25
    return Gauge(measured=round(WIDTH * measured / whole, 1), allowed=round(WIDTH * allowed / whole, 1)) if whole > 0 else None
