"""What happened to an escalation so far, as a timeline. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from escalations import questions
from escalations.models import Act, Escalation
from ledger import marks
from ledger.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One line: what happened, and when."""

    at: datetime
    state: str
    what: str
    more: str = ""


WORDS = {  # an act's kind → its colour and what it is called
    "claimed": ("info", "claimed it"),
    "released": ("queued", "gave it back"),
    "taken_from": ("info", "claimed it from"),
    "reassigned": ("info", "passed it on to"),
    "snoozed": ("queued", "snoozed it"),
    "woken": ("info", "woke it"),
    "edited": ("info", "changed the calls"),
    "previewed": ("queued", "asked for a new preview"),
    "signed": ("applied", "signed"),
    "notified": ("sent", "sent a notice"),
}
MOST = 40  # acts on a page, the newest


def acts_of(row: Escalation) -> list[Act]:
    """Return what people did with an escalation, oldest first."""
    return list(Act.objects.filter(escalation=row).order_by("-id")[:MOST])[::-1]


def of(
    row: Escalation,
    *,
    attempts: Sequence[Evidence],
    outcome: Sequence[Evidence],
    acts: Sequence[Act] = (),
    names: Mapping[int, str],
    reader: int | None = None,
) -> list[Moment]:
    """Return the moments of an escalation, oldest first."""
    tried = [_tried(item, f"Attempt {item.number}" if item.number else "The agent tried:") for item in attempts]
    after = [_tried(item, "It ran:") for item in outcome]
    done = [_act(act, names=names, reader=reader) for act in acts]
    return sorted([*tried, *done, *_own(row, names), *after], key=lambda moment: moment.at)


def _act(act: Act, *, names: Mapping[int, str], reader: int | None) -> Moment:
    state, words = WORDS.get(act.kind, ("queued", act.kind.replace("_", " ")))
    who = "The desk" if act.by is None else "You" if act.by == reader else names.get(act.by, "Somebody").capitalize()
    return Moment(at=act.at, state=state, what=who, more=f"{words}{_rest(act, names)}")


def _rest(act: Act, names: Mapping[int, str]) -> str:
    """Return what an act's detail adds: a person, a time, a revision; whatever else it has is not for people."""
    detail = act.detail
    person = detail.get("to") or detail.get("from") or detail.get("user")
    if isinstance(person, int):
        return f" {names.get(person, 'somebody')}"
    if isinstance(until := detail.get("until"), str):
        return f" until {timezone.localtime(datetime.fromisoformat(until)):%d %b %H:%M}"
    if isinstance(channel := detail.get("channel") or detail.get("destination"), str):
        return f" by {channel}"
    return ""


def people_of(acts: Sequence[Act]) -> list[int | None]:
    """Return everyone whom these acts name."""
    named = [act.detail.get(key) for act in acts for key in ("to", "from", "user")]
    return [*(act.by for act in acts), *(person for person in named if isinstance(person, int))]


def _tried(item: Evidence, what: str) -> Moment:
    if item.mark == marks.READ:
        what = "The agent"
    return Moment(at=item.at, state=item.mark.state, what=what, more=item.mark.word.lower())


def _own(row: Escalation, names: Mapping[int, str]) -> list[Moment]:
    """Return what its own row tells."""
    mark = questions.KINDS[row.kind]
    found = [Moment(at=row.opened_at, state=mark.state, what="Put to a person:", more=mark.word.lower())]
    if row.decided_at:
        decision = marks.DECISIONS[row.decision.kind]
        by = names.get(row.decision.decided_by, "somebody") if row.decision.decided_by else "the system"
        found.append(Moment(at=row.decided_at, state=decision.state, what=decision.word, more=f"by {by}"))
    if row.resumed_at:
        found.append(Moment(at=row.resumed_at, state="info", what="The conversation", more="took the decision"))
    return found
