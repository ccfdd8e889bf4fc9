"""The inbox: each escalation as a line, by urgency, and who is next. The number of queries does not depend on that of lines."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q
from django.utils import timezone

from escalations import inbox_filters, presence, questions, standings
from escalations.inbox_filters import NAMES, NEWEST, UNDECIDED, URGENT, WAITING_VIEWS, InboxFilters
from escalations.models import Escalation, Presence
from ledger import keysets, marks, people, sentences
from ledger.marks import Mark

__all__ = ["NAMES", "NEWEST", "UNDECIDED", "URGENT", "InboxFilters"]
SOON = timedelta(minutes=15)
ENDING = timedelta(hours=1)  # from when on a line says that it is about to expire

SIZE = 25
GROUPS = {"late": "Past target", "soon": "Due within 15 minutes", "": "On time"}
SERIES = re.compile(r"(\d+) attempts failed")


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
    expires: str  # when the system decides, once that is near
    snoozed: str
    signed: str  # "1 of 2": who signed is in `signers`
    signers: str
    lookers: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Lines under one heading; `count` is of the whole list, not of the page. Decided ones have no heading."""

    word: str
    urgency: str
    count: int
    lines: list[Line]


def tabs(*, user: int, now: datetime) -> dict[str, Any]:
    """Return how many there are in each view that is counted cheaply, whatever is not finished; and `oldest` unclaimed."""
    known = inbox_filters.views(user=user, now=now)
    wanted: dict[str, Any] = {name: Count("id", filter=known[name]) for name in ("open", "mine", "unclaimed", "snoozed")}
    found: dict[str, Any] = Escalation.objects.filter(UNDECIDED).aggregate(
        **wanted, oldest=Min("opened_at", filter=known["unclaimed"])
    )
    return found | {name: Escalation.objects.filter(known[name]).count() for name in ("second", "waiting")}


def totals(rows: Any, *, view: str, now: datetime) -> dict[str, int]:
    """Return how many of the rows are late, soon and on time, by the names of `GROUPS`, and `all` of them.

    What does not wait for a person now is only counted: it is neither late nor on time.
    """
    if view not in WAITING_VIEWS:
        return {"late": 0, "all": rows.count()}
    late, soon = Q(due_at__lte=now), Q(due_at__gt=now, due_at__lte=now + SOON)
    found: dict[str, int] = rows.aggregate(late=Count("id", filter=late), soon=Count("id", filter=soon), all=Count("id"))
    return found | {"": found["all"] - found["late"] - found["soon"]}


def groups(lines: Sequence[Line], *, view: str, counts: Mapping[str, int]) -> list[Group]:
    """Return undecided lines by urgency, others as one group without a heading."""
    if view not in WAITING_VIEWS:
        return [Group(word="", urgency="", count=len(lines), lines=list(lines))] if lines else []
    parts = ((name, word, [line for line in lines if line.urgency == name]) for name, word in GROUPS.items())
    return [Group(word=word, urgency=name, count=counts[name], lines=found) for name, word, found in parts if found]


def lines(rows: Sequence[Escalation], *, user: int, now: datetime) -> list[Line]:
    """Return the rows as lines; names, proposals and onlookers are looked up for all of them at once."""
    proposals = standings.newest([row.id for row in rows if row.state in ("open", "claimed")])
    lookers = _lookers(rows, user=user, now=now)
    names = people.names(
        [
            *(person for row in rows for person in (row.requested_by, row.claimed_by, row.snoozed_by)),
            *(person for found in lookers.values() for person in found),
            *(signer for proposal in proposals.values() for signer in proposal.signers),
        ]
    )
    customers = people.subject_names(row.subject for row in rows)
    known = _Known(user=user, now=now, names=names, customers=customers, proposals=proposals, lookers=lookers)
    return [_line(row, known) for row in rows]


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What was looked up for all lines."""

    user: int
    now: datetime
    names: Mapping[int, str]
    customers: Mapping[int, str]
    proposals: Mapping[int, standings.Standing]
    lookers: Mapping[int, Sequence[int]]

    def name(self, person: int | None) -> str:
        return "You" if person == self.user else self.names.get(person or 0, "")


def _line(row: Escalation, known: _Known) -> Line:
    now, proposal = known.now, known.proposals.get(row.id)
    about = [known.customers.get(row.subject or 0), known.names.get(row.requested_by or 0), questions.detail(row)]
    holder = row.claimed_by if row.state == "claimed" and row.claimed_until and row.claimed_until > now else None
    signed = bool(proposal and proposal.signers and (proposal.needs or 1) > 1)
    return Line(
        id=row.id,
        mark=mark(row),
        title=questions.title(row),
        small=" · ".join(part for part in about if part),
        amount="" if row.amount_minor is None else sentences.money(row.amount_minor, row.currency),
        age=ago(now - row.opened_at),
        target=ago(row.due_at - row.opened_at) if row.due_at else "",
        urgency=urgency(row, now=now),
        spent=spent(row, now=now),
        holder=known.name(holder),
        mine=holder == known.user,
        progress=marks.PROGRESS[row.state],
        expires=_clock(row.expires_at, now=now) if _ends_soon(row, now=now) else "",
        snoozed=_clock(row.snoozed_until, now=now) if row.snoozed_until and row.snoozed_until > now else "",
        signed=f"{len(proposal.signers)} of {proposal.needs}" if signed and proposal else "",
        signers=", ".join(known.name(person) for person in proposal.signers) if signed and proposal else "",
        lookers=", ".join(known.name(person) for person in known.lookers.get(row.id, ())),
    )


def _lookers(rows: Sequence[Escalation], *, user: int, now: datetime) -> dict[int, list[int]]:
    """Return who else has the page of each escalation open."""
    found: dict[int, list[int]] = {}
    open_now = Presence.objects.filter(escalation__in=[row.id for row in rows], seen_at__gt=now - presence.GONE)
    for escalation, person in open_now.exclude(person=user).order_by("person").values_list("escalation", "person"):
        found.setdefault(escalation, []).append(person)
    return found


def mark(row: Escalation) -> Mark:
    """Return the mark of its kind with what tells it apart in a list: the rule that holds it, how often it was rolled back."""
    kind = questions.KINDS[row.kind]
    if row.kind == "approval":
        rules = [verdict.get("rule") for verdict in row.payload.get("verdicts") or () if verdict.get("action") == "hold"]
        word = questions.HELD_BY.get(rules[0] or "") if rules else None
        return (
            Mark(state=kind.state, icon="users-round" if word == "second review" else kind.icon, word=f"{kind.word}: {word}")
            if word
            else kind
        )
    if row.kind == "rollbacks" and (times := SERIES.search(str(row.payload.get("reason")))):
        return Mark(state=kind.state, icon=kind.icon, word=f"{kind.word} ×{times[1]}")
    return kind


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


def _ends_soon(row: Escalation, *, now: datetime) -> bool:
    return row.expires_at is not None and row.state in ("open", "claimed") and row.expires_at - now <= ENDING


def _clock(at: datetime | None, *, now: datetime) -> str:
    """Return an instant as a time of day, with its day when that is another."""
    if at is None:
        return ""
    local = timezone.localtime(at)
    return (
        local.strftime("%H:%M") if local.date() == timezone.localtime(now).date() else f"{local.day} {local.strftime('%b %H:%M')}"
    )


def neighbours(
    escalation: Escalation, *, filters: InboxFilters | None = None, user: int = 0, now: datetime | None = None
) -> tuple[int | None, int | None]:
    """Return the undecided escalations before and after this one, in the inbox as the filters narrow it."""
    found = filters.rows(user=user, now=now or timezone.now()) if filters else Escalation.objects.filter(UNDECIDED)
    undecided = found.filter(UNDECIDED).exclude(id=escalation.id)
    if escalation.due_at is None:
        return None, None
    place = keysets.cursor(escalation, URGENT)
    before = keysets.page(undecided, order=URGENT, size=1, before=place).rows
    after = keysets.page(undecided, order=URGENT, size=1, after=place).rows
    return (before[0].id if before else None), (after[0].id if after else None)


def next_one(*, filters: InboxFilters, after: int | None, user: int, now: datetime) -> int | None:
    """Return the undecided escalation that follows in the same view and filters, from the start again at its end.

    One that somebody else holds is passed over, like one's own requests: nothing could be decided there.
    """
    rows = filters.rows(user=user, now=now).filter(UNDECIDED).exclude(id=after or 0)
    free = rows.exclude(Q(state="claimed", claimed_until__gt=now) & ~Q(claimed_by=user)).exclude(requested_by=user)
    here = Escalation.objects.filter(id=after).first() if after else None
    place = keysets.cursor(here, URGENT) if here and here.due_at else ""
    found = keysets.page(free, order=URGENT, size=1, after=place).rows or keysets.page(free, order=URGENT, size=1).rows
    return found[0].id if found else None
