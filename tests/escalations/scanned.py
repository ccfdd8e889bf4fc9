"""Scanning as the outbox worker does, and what people are asked then."""

from typing import Any

from escalations.reconciling import deciding, scanning
from escalations.reconciling.deciding import Chosen
from tests.escalations.scenes import person

OPEN = """
SELECT id, object, kind, coalesce(payload ->> 'reason', '') FROM public.escalations_escalation
WHERE state IN ('open', 'claimed') AND kind IN ('dirty_state', 'unknown_outcome') ORDER BY id
"""
LAST = "SELECT found, opened, cleared, error FROM public.escalations_scan WHERE escalation IS NULL ORDER BY id DESC LIMIT 1"
CLEAN = (0, 0, 0, "")


def scan(outbox: Any, get: Any = None) -> tuple[int, int, int, str]:
    """Scan everything and return what was written down: found, opened, cleared, and what could not be compared."""
    outbox.execute("INSERT INTO public.escalations_scan (asked_by) VALUES (1)")
    assert scanning.work(outbox, get=get) >= 1
    found, opened, cleared, error = outbox.execute(LAST).fetchone()
    return int(found), int(opened), int(cleared), str(error)


def asked(outbox: Any) -> list[tuple[int, str, str, str]]:
    """Return what people are asked about: id, object, kind and the sentence."""
    return list(outbox.execute(OPEN).fetchall())


def found_once(outbox: Any, *, object_: str, get: Any = None) -> int:
    """Scan twice, see that exactly this is asked about, once, and return the question."""
    assert scan(outbox, get)[:2] == (1, 1)
    assert scan(outbox, get)[:2] == (1, 0)
    [(case, about, _, _)] = asked(outbox)
    assert about == object_
    return int(case)


def choose(web: Any, case: int, kind: str, *, name: str = "priya", text: str = "Looked into it.") -> Chosen:
    """Take an exit as a reviewer."""
    return deciding.choose(web, escalation=case, kind=kind, text=text, user=person(name, "reviewer").id)


def state(outbox: Any, case: int) -> str:
    """Return how far a question has come."""
    return str(outbox.execute("SELECT state FROM public.escalations_escalation WHERE id = %s", (case,)).fetchone()[0])
