"""The list of the reconcile desk: what disagrees, what agreed when it was compared last, and when that was. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from escalations import inbox, policies, questions
from escalations.models import Escalation, Scan
from escalations.reconciling.scanning import OF_MESSAGE, STANDING
from ledger import people, reconciling
from ledger.marks import Mark
from ledger.reconciling import Check

MOST = 200  # lines of the list
UNFINISHED = Q(state__in=["open", "claimed"]) | Q(state__in=["decided", "resumed"], interrupt_id__isnull=True)
SETTLING = Mark(state="queued", icon="clock", word="Being settled")


def waiting() -> "QuerySet[Escalation]":
    """Return the disagreements that are not settled yet, the one whose target is next first."""
    return Escalation.objects.filter(UNFINISHED, kind__in=policies.RECONCILED).order_by("due_at", "id")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One disagreement of the list."""

    id: int
    about: str
    mark: Mark
    small: str
    settled: bool  # a person has chosen, and it is being done


def lines(rows: list[Escalation], *, now: datetime) -> list[Line]:
    """Return the lines of these rows, in their order."""
    names = people.subject_names(row.subject for row in rows)
    return [_line(row, customer=names.get(row.subject or 0, ""), now=now) for row in rows]


def _line(row: Escalation, *, customer: str, now: datetime) -> Line:
    settled = row.state not in ("open", "claimed")
    waits = f"waiting {inbox.ago(now - row.opened_at)}"
    return Line(
        id=row.id,
        about=questions.title(row),
        mark=SETTLING if settled else mark_of(row),
        small=" · ".join(word for word in (customer, waits) if word),
        settled=settled,
    )


def check_of(row: Escalation) -> Check | None:
    """Return the check that finds this kind of disagreement; None for one that a webhook brought up, or that is gone."""
    return reconciling.find(row.payload.get("check") or OF_MESSAGE)


def mark_of(row: Escalation) -> Mark:
    """Return what kind of disagreement it is."""
    check = check_of(row) if row.payload.get("check") else None
    return check.mark if check else questions.KINDS[row.kind]


def hold(rows: list[Escalation], *, last: Scan | None) -> list[str]:
    """Return what is true as far as the last scan saw: the sentences of the checks that nothing waits of."""
    counts = last.counts if last else {}
    broken = {row.payload.get("check") or OF_MESSAGE for row in rows} | set(counts.get(STANDING, ()))
    asked = [check for check in reconciling.every() if not check.provider or counts.keys() & check.counts.keys()]
    return [check.holds for check in asked if check.name not in broken]


@dataclass(frozen=True, kw_only=True)
class Scanned:
    """The last scan in words, and whether another one is asked for."""

    last: Scan | None
    running: bool

    @property
    def counts(self) -> str:
        """Return what was compared: "48,213 executions, 9,870 messages"."""
        counts = {what: number for what, number in (self.last.counts if self.last else {}).items() if what != STANDING}
        return ", ".join(counted(number, what) for what, number in sorted(counts.items(), key=lambda one: -one[1]))


def counted(number: int, what: str) -> str:
    """Return a number of things, whose plural begins `what`: "1 day at the provider", "48,213 executions"."""
    things, space, rest = what.partition(" ")
    return f"{number:,} {things.removesuffix('s') if number == 1 else things}{space}{rest}"


def scanned() -> Scanned:
    """Return how scanning stands."""
    whole = Scan.objects.filter(escalation__isnull=True)
    return Scanned(
        last=whole.filter(finished_at__isnull=False).order_by("-id").first(),
        running=whole.filter(finished_at__isnull=True).exists(),
    )
