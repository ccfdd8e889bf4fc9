"""The list of conversations beside the chat: whose, what about, and how each stands. A constant number of queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest
from django.utils import timezone

from agent.models import Conversation, Notice, StaffMessage, Thread
from escalations.models import Escalation
from ledger import people

MOST = 60
ONLY = ("mine", "all", "waiting")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the list."""

    id: int
    name: str
    sub: str
    at: datetime
    state: str = ""
    icon: str = ""
    word: str = ""
    busy: bool = False

    @property
    def day(self) -> str:
        """Return the day's name for a heading."""
        day, today = timezone.localtime(self.at).date(), timezone.localdate()
        return {0: "Today", 1: "Yesterday"}.get((today - day).days, f"{day:%A} {day.day} {day:%B}")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What the list shows, with the filters that made it."""

    entries: list[Entry]
    only: str
    text: str
    waiting: int
    more: bool

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Return the filters with their labels."""
        return [(only, only.capitalize()) for only in ONLY]

    @property
    def query(self) -> str:
        """Return the filters as a query string for the list's links."""
        return urlencode({key: value for key, value in (("only", self.only), ("q", self.text)) if value})


def listing(*, user: Any, only: str = "", text: str = "", default: str = "all") -> Listing:
    """Return the newest conversations: the person's own, all, or those that wait; of these, what the text finds."""
    only = only if only in ONLY else default
    halted = Thread.objects.filter(state__in=[Thread.State.WAITING, Thread.State.STUCK]).values("thread")
    rows = Conversation.objects.all()
    if only == "mine":
        rows = rows.filter(created_by=user)
    elif only == "waiting":
        rows = rows.filter(thread__in=halted)
    found = list(_newest(_matching(rows, text.strip()))[: MOST + 1])
    return Listing(
        entries=_entries(found[:MOST]),
        only=only,
        text=text.strip(),
        waiting=Conversation.objects.filter(thread__in=halted).count(),
        more=len(found) > MOST,
    )


def entry(row: Conversation) -> Entry:
    """Return the line of one conversation."""
    return _entries([row])[0]


def _matching(rows: QuerySet[Conversation], text: str) -> QuerySet[Conversation]:
    """Keep the conversations about a customer, with words, or with the number that the text names."""
    text = text.replace("\x00", "")
    if not text:
        return rows
    wanted = Q(subject__in=people.subjects_like(text))
    wanted |= Q(thread__in=StaffMessage.objects.filter(text__icontains=text).values("thread"))
    number = text.upper().removeprefix("C-")
    if number.isascii() and number.isdigit() and len(number) <= 18:
        wanted |= Q(id=int(number))
    return rows.filter(wanted)


def _newest(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Order by what happened last: the agent's progress, a message, or the beginning."""
    progressed = Thread.objects.filter(thread=OuterRef("thread")).values("progressed_at")
    said = StaffMessage.objects.filter(thread=OuterRef("thread")).order_by("-number").values("sent_at")[:1]
    moved = Greatest(Subquery(progressed), Subquery(said), F("created_at"))  # PostgreSQL ignores what is missing
    return rows.annotate(moved_at=moved).order_by("-moved_at", "-id")


def _entries(rows: list[Conversation]) -> list[Entry]:
    threads = [row.thread for row in rows]
    names = people.subject_names(row.subject for row in rows)
    states = {row.thread: row for row in Thread.objects.filter(thread__in=threads)}
    messages = _last(StaffMessage.objects.exclude(state="cancelled"), threads, "-number")
    notices = _last(Notice.objects.exclude(state__in=["info", "said"]), threads, "-id")
    people_in = people.names(row.stepped_in_by for row in states.values())
    undecided = _last(Escalation.objects.filter(state__in=["open", "claimed"]), threads, "-id")
    return [
        _entry(
            row,
            name=names.get(row.subject, f"Customer {row.subject}"),
            thread=states.get(row.thread),
            message=messages.get(row.thread),
            notice=notices.get(row.thread),
            escalation=undecided.get(row.thread),
            person=_person(states.get(row.thread), people_in),
        )
        for row in rows
    ]


def _last(rows: QuerySet[Any], threads: Iterable[UUID], order: str) -> Mapping[UUID, Any]:
    """Return the last row of each thread."""
    return {row.thread: row for row in rows.filter(thread__in=threads).order_by("thread", order).distinct("thread")}


def _entry(
    row: Conversation,
    *,
    name: str,
    thread: Thread | None,
    message: StaffMessage | None,
    notice: Notice | None,
    escalation: Escalation | None,
    person: str = "",
) -> Entry:
    sub = message.text.partition("\n")[0] if message else "Nothing was said yet"
    at = max(filter(None, [thread and thread.progressed_at, message and message.sent_at, row.created_at]))
    state, icon, word, busy = "", "", "", False
    if person:
        sub, state, icon, word = f"{person} answers", "info", "user-round", "A person answers"
    elif thread and thread.state == Thread.State.RUNNING:
        sub, state, word, busy = thread.activity or "Writing", "info", "The agent works", True
    elif escalation:
        sub, state, icon, word = _reason(escalation), "held", "hand", "Waits for a person"
    elif thread and thread.state == Thread.State.STUCK:
        sub, state, icon, word = "Could not go on", "held", "triangle-alert", "Stuck"
    elif notice and (message is None or notice.created_at > message.sent_at):
        sub, state, icon, word = notice.text, notice.state, ICONS.get(notice.state, "eye"), notice.state.capitalize()
    return Entry(id=row.id, name=name, sub=sub, at=at, state=state, icon=icon, word=word, busy=busy)


ICONS = {"confirmed": "check-check", "failed": "ban", "uncertain": "circle-question-mark", "held": "hand", "undone": "undo-2"}


def _person(thread: Thread | None, names: Mapping[int, str]) -> str:
    """Return who answers instead of the agent, empty when nobody does."""
    return names.get(thread.stepped_in_by, "Somebody") if thread and thread.stepped_in_by else ""


def _reason(row: Escalation) -> str:
    return str(row.payload.get("reason") or "Waits for a person")
