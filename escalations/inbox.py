"""The inbox: views, filters, and each escalation as a line. The number of queries does not depend on the number of lines."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import Count, Q, TextField
from django.db.models.functions import Cast

from escalations import questions
from escalations.models import Escalation
from ledger import keysets, marks, people
from ledger.filters import numbered
from ledger.marks import Mark

SOON = timedelta(minutes=15)
SIZE = 25
UNDECIDED = Q(state__in=["open", "claimed"])
URGENT = keysets.Order(keys=("due_at", "id"), descending=False)
NEWEST = keysets.Order(keys=("id",))
NAMES = {
    "open": "Open",
    "mine": "Mine",
    "unclaimed": "Unclaimed",
    "waiting": "Not run yet",
    "done": "Done",
    "expired": "Expired",
}
GROUPS = {"late": "Past target", "soon": "Due within 15 minutes", "": "On time"}


class InboxFilters(forms.Form):
    """What the inbox is narrowed by."""

    view = forms.ChoiceField(required=False, choices=list(NAMES.items()))
    kind = forms.ChoiceField(required=False, choices=[("", "any"), *((k, mark.word) for k, mark in questions.KINDS.items())])
    q = forms.CharField(required=False, max_length=200)

    @property
    def shown(self) -> str:
        """Return the view that is open."""
        name: str = self.cleaned_data.get("view") or "open"
        return name

    def rows(self, *, user: int, now: datetime) -> Any:
        """Return the escalations that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Escalation.objects.none()
        found = Escalation.objects.filter(views(user=user, now=now)[self.shown])
        if kind := self.cleaned_data["kind"]:
            found = found.filter(kind=kind)
        return with_words(found, self.cleaned_data["q"])


def views(*, user: int, now: datetime) -> dict[str, Q]:
    """Return the condition of each view. A claim that ran out holds nobody off."""
    held = Q(state="claimed", claimed_until__gt=now)
    return {
        "open": UNDECIDED,
        "mine": held & Q(claimed_by=user),
        "unclaimed": UNDECIDED & ~held,
        "waiting": Q(state="decided"),
        "done": Q(state__in=["resumed", "done"]),
        "expired": Q(state="expired"),
    }


def with_words(rows: Any, text: str) -> Any:
    """Return the rows about a customer, from a person, or with words, that the text names; "E-12" is exactly one."""
    if not text:
        return rows
    if text.upper().startswith("E-") and (number := numbered(text, "E-")) is not None:
        return rows.filter(id=number)
    return rows.alias(words=Cast("payload", TextField())).filter(
        Q(subject__in=people.subjects_like(text)) | Q(requested_by__in=people.ids_like(text)) | Q(words__icontains=text)
    )


def tabs(*, user: int, now: datetime) -> dict[str, int]:
    """Return how many there are in each view that can be counted cheaply: whatever is not finished."""
    wanted = {
        name: where for name, where in views(user=user, now=now).items() if name in ("open", "mine", "unclaimed", "waiting")
    }
    unfinished = Escalation.objects.filter(state__in=["open", "claimed", "decided"])
    found: dict[str, int] = unfinished.aggregate(**{name: Count("id", filter=where) for name, where in wanted.items()})
    return found


@dataclass(frozen=True, kw_only=True)
class Line:
    """One escalation of the list."""

    id: int
    mark: Mark
    title: str
    small: str
    amount: str
    age: str
    target: str
    urgency: str  # late, soon or nothing
    spent: int  # percent of the target
    holder: str
    mine: bool
    progress: Mark


def lines(rows: list[Escalation], *, user: int, now: datetime) -> list[Line]:
    """Return the rows as lines, names looked up for all of them at once."""
    names = people.names([*(row.requested_by for row in rows), *(row.claimed_by for row in rows)])
    customers = people.subject_names(row.subject for row in rows)
    return [_line(row, user=user, now=now, names=names, customers=customers) for row in rows]


def _line(row: Escalation, *, user: int, now: datetime, names: dict[int, str], customers: dict[int, str]) -> Line:
    about = [customers.get(row.subject), names.get(row.requested_by), questions.detail(row)]
    holder = row.claimed_by if row.state == "claimed" and row.claimed_until > now else None
    return Line(
        id=row.id,
        mark=questions.KINDS[row.kind],
        title=questions.title(row),
        small=" · ".join(part for part in about if part),
        amount=questions.amount(row),
        age=ago(now - row.opened_at),
        target=ago(row.due_at - row.opened_at) if row.due_at else "",
        urgency=urgency(row, now=now),
        spent=spent(row, now=now),
        holder="You" if holder == user else names.get(holder, "") if holder else "",
        mine=holder == user,
        progress=marks.PROGRESS[row.state],
    )


def urgency(row: Escalation, *, now: datetime) -> str:
    """Return "late" past the target, "soon" shortly before it, else nothing; what is decided is never urgent."""
    if row.due_at is None or row.state not in ("open", "claimed"):
        return ""
    left = row.due_at - now
    return "late" if left <= timedelta(0) else "soon" if left <= SOON else ""


def spent(row: Escalation, *, now: datetime) -> int:
    """Return how much of the time to the target is over, in percent."""
    whole = (row.due_at - row.opened_at) if row.due_at else timedelta(0)
    return min(100, max(0, round(100 * ((now - row.opened_at) / whole)))) if whole else 0


def ago(span: timedelta) -> str:
    """Return a length of time in its two largest units: "2 h 4 min"."""
    minutes = max(0, int(span.total_seconds()) // 60)
    if minutes < 1:
        return f"{max(0, int(span.total_seconds()))} s"
    days, hours, rest = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts = [(days, "d"), (hours, "h"), (rest, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)[:20] if not days else f"{days} d {hours} h"


def neighbours(escalation: Escalation) -> tuple[int | None, int | None]:
    """Return the undecided escalations before and after this one in the inbox."""
    undecided = Escalation.objects.filter(UNDECIDED).exclude(id=escalation.id)
    if escalation.due_at is None:
        return None, None
    page = keysets.cursor(escalation, URGENT)
    before = keysets.page(undecided, order=URGENT, size=1, before=page).rows
    after = keysets.page(undecided, order=URGENT, size=1, after=page).rows
    return (before[0].id if before else None), (after[0].id if after else None)
