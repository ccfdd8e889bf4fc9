"""Scans: each thing broken by hand is asked about once, whatever is done about it ends it, and the next scan is clean."""

from typing import Any

import pytest

from escalations import facts
from escalations.reconciling import deciding, looking, scanning, scans
from tests.escalations.questions import row
from tests.escalations.scenes import person

ASKED = "SELECT id, object, kind FROM public.escalations_escalation WHERE state IN ('open', 'claimed') ORDER BY id"


def scan(outbox: Any, get: Any = None) -> dict[str, Any]:
    """Scan everything, as the outbox worker does, and return what was written down."""
    outbox.execute("INSERT INTO public.escalations_scan (asked_by) VALUES (NULL)")
    assert scanning.work(outbox, get=get) >= 1
    names = ("found", "opened", "cleared", "error")
    found = outbox.execute(f"SELECT {', '.join(names)} FROM public.escalations_scan ORDER BY id DESC LIMIT 1").fetchone()
    return dict(zip(names, found, strict=True))


def asked(outbox: Any) -> list[tuple[int, str, str]]:
    """Return what people are asked about."""
    return list(outbox.execute(ASKED).fetchall())


@pytest.fixture
def priya(database: None) -> Any:
    return person("priya", "reviewer")


def test_it_finds_nothing_in_an_empty_house(outbox: Any) -> None:
    assert scan(outbox) == {"found": 0, "opened": 0, "cleared": 0, "error": ""}
