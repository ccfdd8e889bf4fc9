"""What other apps know about a row of evidence. Imports point down only, so their tables are asked by name."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps

from ledger import wiring

MOST_CALLS = 20  # of one batch; the ledger's own constraint


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


def escalations(*, thread: UUID, ai_message_id: str) -> list[Any]:
    """Return the escalations about one batch, oldest first."""
    found = model("escalations.Escalation").objects.filter(thread=thread, ai_message_id=ai_message_id)
    return list(found.select_related("decision").order_by("id"))


def messages(*, thread: UUID, ai_message_id: str) -> list[Any]:
    """Return the outbox messages that one batch committed, in order."""
    return list(model("outbox.Message").objects.filter(thread=thread, ai_message_id=ai_message_id).order_by("id"))


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
