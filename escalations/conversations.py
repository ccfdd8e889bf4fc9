"""The conversation behind an escalation. Its tables are the agent's, which may not be imported from here: imports point
down only. So this one module asks for them by name."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps

LATEST = 20  # entries on the page; the rest is one link away
SPEAKERS = {"human": "Staff", "ai": "Agent", "tool": "Told the agent"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One message of the thread."""

    speaker: str
    text: str
    is_tool: bool
    at: datetime


def number_of(thread: UUID) -> int | None:
    """Return the number of the conversation of this thread."""
    found: int | None = _rows("Conversation").filter(thread=thread).values_list("id", flat=True).first()
    return found


def asked_at(thread: UUID, *, before: datetime) -> datetime | None:
    """Return when the agent took up the staff message that was the latest at that time."""
    found: datetime | None = _taken(thread, before=before).values_list("taken_at", flat=True).first()
    return found


def next_asked_at(thread: UUID, *, after: datetime) -> datetime | None:
    """Return when the agent took up the first staff message after that time."""
    taken = _rows("StaffMessage").filter(thread=thread, state="taken", taken_at__gt=after)
    found: datetime | None = taken.order_by("taken_at").values_list("taken_at", flat=True).first()
    return found


def staff_message(thread: UUID, *, before: datetime) -> str:
    """Return the text of that staff message; empty when there is none."""
    return str(_taken(thread, before=before).values_list("text", flat=True).first() or "")


def latest(thread: UUID) -> list[Entry]:
    """Return the newest entries, oldest first, answers to one step as one; the calls themselves are shown as attempts."""
    rows = _rows("TranscriptEntry").filter(thread=thread, role__in=SPEAKERS).exclude(text="").order_by("-position")[:LATEST]
    found: list[Entry] = []
    for row in reversed(rows):
        entry = Entry(speaker=SPEAKERS[row.role], text=row.text, is_tool=row.role == "tool", at=row.written_at)
        if entry.is_tool and found and found[-1].is_tool:
            entry = replace(entry, text=f"{found.pop().text}\n{entry.text}")
        found.append(entry)
    return found


def _taken(thread: UUID, *, before: datetime) -> Any:
    return _rows("StaffMessage").filter(thread=thread, state="taken", taken_at__lte=before).order_by("-taken_at")


def _rows(name: str) -> Any:
    return apps.get_model("agent", name).objects
