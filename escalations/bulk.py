"""What a reviewer does to several escalations at once: each in a transaction of its own, and each with its own answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django import forms
from django.db import OperationalError
from django.utils import timezone
from psycopg import errors

from escalations import desk, facts, policies, questions, snoozes, standings, trays
from escalations.forms import LONGEST, REASONS, words_of
from escalations.models import Escalation
from ledger import marks
from ledger.marks import Mark
from ledger.spans import clock

ACTS = {
    "approve": "Approve", "reject": "Reject", "answer": "Answer", "retry": "Retry", "close": "Close", "claim": "Claim",
    "claim_from": "Claim", "release": "Release", "snooze": "Snooze", "wake": "Wake up", "reassign": "Reassign",
}  # fmt: skip
DONE = {
    "claim": Mark(state="info", icon="user-round-check", word="Claimed"),
    "claim_from": Mark(state="info", icon="user-round-check", word="Claimed"),
    "release": Mark(state="queued", icon="user-round", word="Released"),
    "snooze": Mark(state="queued", icon="timer", word="Snoozed"),
    "wake": Mark(state="info", icon="clock", word="Woken up"),
    "reassign": Mark(state="info", icon="users-round", word="Reassigned"),
}
SIGNED = Mark(state="held", icon="users-round", word="Signed")
LEFT = Mark(state="undone", icon="circle-dashed", word="Left as it is")
LOST = Mark(state="undone", icon="users-round", word="Somebody was first")
UNKNOWN = Mark(state="uncertain", icon="circle-question-mark", word="Look at it")
NEXT = {
    "approve": "It runs now.",
    "reject": "The agent is told now. Nothing of it ran.",
    "answer": "The agent goes on with your words.",
    "retry": "The same step runs once more, unchanged.",
    "close": "It is off the inbox.",
}


class Mixed(facts.Fact):
    """Several kinds, or kinds that allow different decisions."""

    def __init__(self) -> None:
        super().__init__("These are of different kinds, so they cannot be decided together. Nothing was decided.")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """One item as the form sends it: which revision and which clean preview were shown; None where none was."""

    id: int
    revision: int | None
    preview: int | None


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of one item."""

    id: int
    title: str
    mark: Mark
    sentence: str
    done: bool


class Items(forms.Field):
    """The items of a tray: "12:0:77"."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[Chosen]:
        """Return them once each."""
        found = [chosen(text) for text in value or ()]
        if not found:
            raise forms.ValidationError("Select at least one escalation.")
        if None in found or len(found) > trays.MOST:
            raise forms.ValidationError(f"Reload the page and select again, at most {trays.MOST}.")
        return list({item.id: item for item in found if item}.values())


def chosen(text: str) -> Chosen | None:
    """Return the item that the text names; None when it is no item."""
    parts = [*text.split(":"), "", ""]
    if not all(part == "" or (part.isascii() and part.isdigit() and len(part) <= 18) for part in parts) or not parts[0]:
        return None
    number, revision, preview = (int(part) if part else None for part in parts[:3])
    return Chosen(id=number or 0, revision=revision, preview=preview)


class ActForm(forms.Form):
    """An act, the items it is for, and the words that it needs."""

    act = forms.ChoiceField(choices=list(ACTS.items()), error_messages={"invalid_choice": "There is no act “%(value)s”."})
    item = Items(required=False)
    reason = forms.ChoiceField(required=False, choices=list(REASONS.items()))
    text = forms.CharField(required=False, max_length=LONGEST)
    until = forms.ChoiceField(required=False, choices=list(snoozes.SPANS.items()))
    to = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def clean(self) -> dict[str, Any]:
        """Join reason and words; each act needs what only it needs."""
        given: dict[str, Any] = super().clean() or {}
        act = given.get("act", "")
        words = words_of(given, kind=act)
        if act in policies.NEEDS_TEXT and not words:
            self.add_error("text", str(facts.TextMissing(decision=act)))
        if act == "snooze" and not given.get("until"):
            self.add_error("until", "Choose until when.")
        if act == "reassign" and not given.get("to"):
            self.add_error("to", "Choose a reviewer.")
        return given | {"words": words}


def perform(given: dict[str, Any], *, user: int, now: datetime) -> list[Told]:
    """Do the act to each item and tell what became of each, in their order.

    Raises `Mixed` before anything is done when a decision is for items that cannot be decided together.
    """
    items: Sequence[Chosen] = given["item"]
    rows = {row.id: row for row in Escalation.objects.filter(id__in=[item.id for item in items])}
    if given["act"] in trays.TOGETHER:
        undecided = [row for row in rows.values() if row.state in ("open", "claimed")]
        known = standings.newest([row.id for row in undecided])
        if undecided and given["act"] not in trays.together(undecided, known):
            raise Mixed if len(undecided) > 1 else facts.NotAllowed(decision=given["act"])
    told: list[Told] = []
    for item in items:
        cut = bool(told) and told[-1].mark is UNKNOWN
        told.append(
            _left(item, rows.get(item.id), "Not tried: the database did not answer.")
            if cut
            else _one(item, rows.get(item.id), given, user=user, now=now)
        )
    return told


def _one(item: Chosen, row: Escalation | None, given: dict[str, Any], *, user: int, now: datetime) -> Told:
    """Do it to one item, in one transaction; whatever forbids it is this item's answer."""
    try:
        mark, sentence = VERBS[given["act"]](item, given, user, now)
    except facts.AlreadyDecided as fact:
        return _told(item, row, LOST, _first(fact, user=user), done=False)
    except facts.Fact as fact:
        return _left(item, row, str(fact))
    except errors.LockNotAvailable:
        return _left(item, row, "Somebody else is changing it at this moment. Try again.")
    except (psycopg.OperationalError, OperationalError):
        return _told(item, row, UNKNOWN, "The database did not answer: it may have been carried out or not.", done=False)
    return _told(item, row, mark, sentence, done=True)


def _told(item: Chosen, row: Escalation | None, mark: Mark, sentence: str, *, done: bool) -> Told:
    return Told(id=item.id, title=questions.title(row) if row else "", mark=mark, sentence=sentence, done=done)


def _left(item: Chosen, row: Escalation | None, sentence: str) -> Told:
    return _told(item, row, LEFT, sentence, done=False)


def _first(fact: facts.AlreadyDecided, *, user: int) -> str:
    """Say who was first, with what, and when."""
    when = f" at {clock(fact.at)}" if fact.at else ""
    return f"{fact.name[:1].upper() + fact.name[1:]} already {fact.deed()}{when}. Nothing of yours was done to it."


# -- the verbs: each returns the mark and the sentence of an item that it was done to ------------

Outcome = tuple[Mark, str]
Verb = Callable[[Chosen, dict[str, Any], int, datetime], Outcome]


def _approve(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    """Sign exactly what the tray showed: another newest preview, or one that was not shown as clean, is refused."""
    if item.revision is None or item.preview is None:
        raise NotShown
    signed = desk.sign(escalation=item.id, user=user, revision=item.revision, preview=item.preview, text=given["words"])
    if signed.decision is None:
        return SIGNED, f"{signed.signatures} of {signed.needs} signed. Another reviewer has to sign too."
    return marks.DECISIONS[signed.decision.kind], NEXT["approve"]


class NotShown(facts.Fact):
    """An approval of something whose clean preview was not on the screen."""

    def __init__(self) -> None:
        super().__init__("It was not shown with a clean preview that you may sign, so it was not approved.")


def _decide(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    standing = standings.newest([item.id]).get(item.id)
    if standing is not None and standing.revision != item.revision:
        raise facts.Outdated
    desk.decide(escalation=item.id, kind=given["act"], text=given["words"], user=user)
    return marks.DECISIONS[given["act"]], NEXT[given["act"]]


def _claim(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    desk.claim(escalation=item.id, user=user, from_another=given["act"] == "claim_from")
    return DONE[given["act"]], "You hold it for 15 minutes."


def _release(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    desk.release(escalation=item.id, user=user)
    free = Escalation.objects.filter(id=item.id, claimed_by__isnull=True).exists()
    return DONE["release"], "Anybody may take it." if free else "You did not hold it any more."


def _snooze(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    until = snoozes.ends(given["until"], now=now)
    desk.snooze(escalation=item.id, user=user, until=until)
    return DONE["snooze"], f"It is hidden until {clock(until)} on {timezone.localtime(until):%-d %B}; its target stays."


def _wake(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    desk.wake_up(escalation=item.id, user=user)
    return DONE["wake"], "It is back in the inbox."


def _reassign(item: Chosen, given: dict[str, Any], user: int, now: datetime) -> Outcome:
    desk.reassign(escalation=item.id, user=user, to=given["to"])
    return DONE["reassign"], "They hold it for 15 minutes."


VERBS: dict[str, Verb] = {
    "approve": _approve, "reject": _decide, "answer": _decide, "retry": _decide, "close": _decide,
    "claim": _claim, "claim_from": _claim, "release": _release, "snooze": _snooze, "wake": _wake, "reassign": _reassign,
}  # fmt: skip
