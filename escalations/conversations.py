"""The conversation behind an escalation. Its tables are the agent's, which may not be imported from here: imports point
down only. So this module asks for them by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Exists, OuterRef

from escalations.models import Decision
from ledger import people

DECISION = "decision:"  # begins the ids of entries that a decision put into the thread
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


def stepped_in(thread: UUID) -> tuple[str, datetime] | None:
    """Return who answers there instead of the agent, and since when: nothing that is decided runs until they hand back."""
    row = _rows("Thread").filter(thread=thread, stepped_in_by__isnull=False).values_list("stepped_in_by", "stepped_in_at").first()
    return (people.names([row[0]]).get(row[0], "Somebody"), row[1]) if row else None


def written_in(threads: Sequence[UUID | None], *, user: int) -> set[UUID]:
    """Return those of the threads in which the agent has read a message of this person's (`rows.has_asked` says it to verbs)."""
    wanted = [thread for thread in threads if thread]
    taken = _rows("StaffMessage").filter(thread__in=wanted, author=user, state="taken")
    return set(taken.values_list("thread", flat=True)) if wanted else set()


def led_by(threads: Sequence[UUID | None], *, user: int) -> set[UUID]:
    """Return those of the threads in which the agent acts on this person's answer (`rows.has_answered` says it to verbs)."""
    wanted = [thread for thread in threads if thread]
    taken = _rows("StaffMessage").filter(thread=OuterRef("escalation__thread"), state="taken")
    since = taken.filter(taken_at__gt=OuterRef("decided_at"))
    answers = Decision.objects.filter(escalation__thread__in=wanted, kind=Decision.Kind.ANSWER, decided_by=user)
    found = answers.filter(~Exists(since)).values_list("escalation__thread", flat=True)
    return {thread for thread in found if thread} if wanted else set()


def next_asked_at(thread: UUID, *, after: datetime) -> datetime | None:
    """Return when the agent took up the first staff message after that time."""
    taken = _rows("StaffMessage").filter(thread=thread, state="taken", taken_at__gt=after)
    found: datetime | None = taken.order_by("taken_at").values_list("taken_at", flat=True).first()
    return found


def around(thread: UUID, *, at: datetime) -> list[Entry]:
    """Return the request that was answered at that time and the newest of what followed on it, oldest first.

    What was said before fills the rest of the room. Answers to one step are one entry; the calls themselves are attempts.
    """
    said = _rows("TranscriptEntry").filter(thread=thread, role__in=SPEAKERS).exclude(text="")
    asked = said.filter(role="human").exclude(message_id__startswith=DECISION)
    request = asked.filter(written_at__lte=at).order_by("-position").first() or asked.order_by("position").first()
    if request is None:
        return _joined(said.order_by("-position")[:LATEST])
    ended = asked.filter(position__gt=request.position).order_by("position").values_list("position", flat=True).first()
    turn = said.filter(position__lt=ended) if ended is not None else said
    after = list(turn.filter(position__gt=request.position).order_by("-position")[: LATEST - 1])
    earlier = said.filter(position__lt=request.position).order_by("-position")[: LATEST - 1 - len(after)]
    return _joined([*after, request, *earlier])


def answered_at(thread: UUID, *, since: datetime | None) -> list[datetime]:
    """Return when reviewers answered the agent: attempts are counted anew from there."""
    found = Decision.objects.filter(escalation__thread=thread, kind=Decision.Kind.ANSWER)
    return list((found.filter(decided_at__gte=since) if since else found).values_list("decided_at", flat=True))


def _joined(newest_first: Iterable[Any]) -> list[Entry]:
    found: list[Entry] = []
    for row in reversed(list(newest_first)):
        entry = Entry(speaker=SPEAKERS[row.role], text=row.text, is_tool=row.role == "tool", at=row.written_at)
        if entry.is_tool and found and found[-1].is_tool:
            entry = replace(entry, text=f"{found.pop().text}\n{entry.text}")
        found.append(entry)
    return found


def _rows(name: str) -> Any:
    return apps.get_model("agent", name).objects
