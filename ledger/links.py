"""What other apps know about a row of evidence. Imports point down only, so their tables are asked by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps

from ledger import marks, people, wiring

MOST_CALLS = 20  # of one batch; the ledger's own constraint


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was put to a person, and what they decided."""

    escalation: Any
    decision: Any  # None while there is none
    by: str

    @property
    def progress(self) -> marks.Mark:
        """Return how it stands."""
        return marks.PROGRESS[self.escalation.state]

    @property
    def mark(self) -> marks.Mark:
        """Return what was decided."""
        return marks.DECISIONS[self.decision.kind]


def model(label: str) -> Any:
    """Return a model by "app.Name"."""
    return apps.get_model(label)


def conversations(threads: Iterable[UUID]) -> dict[UUID, int]:
    """Return the numbers of the conversations of these threads."""
    found = model("agent.Conversation").objects.filter(thread__in=set(threads)).values_list("thread", "id")
    return dict(found)


def thread_of(conversation: int) -> UUID | None:
    """Return a conversation's thread, or None."""
    found: UUID | None = model("agent.Conversation").objects.filter(id=conversation).values_list("thread", flat=True).first()
    return found


def staff_message(thread: UUID, *, before: datetime) -> Any:
    """Return the staff message that the agent had taken up last at that time, or None."""
    found = model("agent.StaffMessage").objects.filter(thread=thread, state="taken", taken_at__lte=before)
    return found.order_by("-taken_at").first()


def questions(**about: Any) -> list[Question]:
    """Return the escalations about something, oldest first, each with how it stands and with its decision."""
    found = model("escalations.Escalation").objects.filter(**about).select_related("decision").order_by("id")
    rows = [(row, getattr(row, "decision", None)) for row in found]
    names = people.names(decision.decided_by for _, decision in rows if decision)
    return [
        Question(escalation=row, decision=decision, by=names.get(decision.decided_by, "the system") if decision else "")
        for row, decision in rows
    ]


def effects(calls: Iterable[tuple[UUID, str, int]]) -> dict[tuple[UUID, str, int], list[Any]]:
    """Return the external effects that each of these (thread, ai message id, call index) promised, in order: one query."""
    wanted, make = set(calls), wiring.plugged("BACKSTOP_EFFECT")
    rows = model("outbox.Message").objects.filter(
        thread__in={thread for thread, _, _ in wanted}, ai_message_id__in={message for _, message, _ in wanted}
    )
    found: dict[tuple[UUID, str, int], list[Any]] = {}
    for row in rows.order_by("id"):
        found.setdefault((row.thread, row.ai_message_id, row.call_index), []).append(make(message=row))
    return found


def answers(batches: Iterable[tuple[UUID, str]]) -> dict[tuple[UUID, str, int], str]:
    """Return what the model read about each call of these (thread, ai message id), as far as the thread still says it."""
    wanted = set(batches)
    rows = model("agent.TranscriptEntry").objects.filter(
        thread__in={thread for thread, _ in wanted},
        message_id__in=[f"{message}:{index}" for _, message in wanted for index in range(MOST_CALLS)],
    )
    found: dict[tuple[UUID, str, int], str] = {}
    for row in rows.values("thread", "message_id", "text"):
        message, _, index = row["message_id"].rpartition(":")
        found[row["thread"], message, int(index)] = row["text"]
    return found
