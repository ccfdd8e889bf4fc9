"""Reading conversations for pages: everything one of them is drawn from, in a number of queries that never grows."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from agent.models import Conversation, Draft, Feed, Notice, StaffMessage, Thread, TranscriptEntry
from escalations.models import Escalation
from ledger import evidence, people
from ledger.evidence import Evidence
from ledger.models import Attempt, AttemptOutcome, Execution
from outbox.models import Message

MOST_ENTRIES = 120  # newest entries of the transcript that a page shows unless asked for all
MOST_QUESTIONS = 5
Key = tuple[str, int]  # AI message id and call index


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a conversation's page is made from."""

    conversation: Conversation
    thread: Thread | None
    entries: list[TranscriptEntry]
    messages: list[StaffMessage]
    notices: list[Notice]
    attempts: dict[str, list[Evidence]]  # by AI message id, in order
    executions: dict[Key, Execution]
    effects: dict[Key, list[Message]]
    escalations: list[Escalation]
    draft: str
    seq: int
    names: dict[int, str] = field(default_factory=dict)
    subject: str = ""
    cut: bool = False  # older entries exist

    @property
    def queued(self) -> list[StaffMessage]:
        """Return the messages that wait, in order."""
        return [message for message in self.messages if message.state == StaffMessage.State.QUEUED]

    @property
    def undecided(self) -> Escalation | None:
        """Return the escalation that the thread waits for, until the thread has taken its decision."""
        waiting = [row for row in self.escalations if row.interrupt_id and row.state in ("open", "claimed", "decided")]
        return waiting[-1] if waiting else None

    def name(self, user: int | None) -> str:
        """Return a person's name, or what stands for somebody unknown."""
        return self.names.get(user or 0, "Somebody")


def create(*, subject: int, user: Any) -> Conversation:
    """Begin a conversation about a customer."""
    return Conversation.objects.create(subject=subject, created_by=user)


def read(conversation: Conversation, *, everything: bool = False) -> Rows:
    """Return the rows of a conversation; without `everything`, of its newest stretch only."""
    thread = conversation.thread
    entries, cut = _entries(thread, everything=everything)
    since = entries[0].written_at if cut else None
    messages = list(StaffMessage.objects.filter(_since(since, "taken_at") | Q(state="queued"), thread=thread).order_by("number"))
    escalations = list(Escalation.objects.filter(thread=thread).select_related("decision").order_by("id"))
    ids = {entry.message_id for entry in entries if entry.tool_calls}
    return Rows(
        conversation=conversation,
        thread=Thread.objects.filter(thread=thread).first(),
        entries=entries,
        messages=messages,
        notices=list(Notice.objects.filter(_since(since, "created_at"), thread=thread).order_by("id")),
        attempts=_attempts(thread, ids),
        executions={
            (row.ai_message_id, row.call_index): row for row in Execution.objects.filter(thread=thread, ai_message_id__in=ids)
        },
        effects=_effects(thread, ids),
        escalations=escalations,
        draft=Draft.objects.filter(thread=thread).values_list("text", flat=True).first() or "",
        seq=newest(thread),
        names=people.names([conversation.created_by_id, *_people(messages, escalations)]),
        subject=people.subject_names([conversation.subject]).get(conversation.subject, f"Customer {conversation.subject}"),
        cut=cut,
    )


def questions(subject: int) -> list[Escalation]:
    """Return the newest questions about a customer that were put to a person, in any conversation."""
    return list(Escalation.objects.filter(subject=subject).select_related("decision").order_by("-id")[:MOST_QUESTIONS])


def newest(thread: UUID) -> int:
    """Return the number of a thread's newest event, 0 before the first."""
    return Feed.objects.filter(thread=thread).values_list("seq", flat=True).first() or 0


def _entries(thread: UUID, *, everything: bool) -> tuple[list[TranscriptEntry], bool]:
    rows = TranscriptEntry.objects.filter(thread=thread).exclude(role__in=["tool", "system"]).order_by("-position")
    found = list(rows if everything else rows[: MOST_ENTRIES + 1])
    cut = not everything and len(found) > MOST_ENTRIES
    return found[:MOST_ENTRIES][::-1] if cut else found[::-1], cut


def _since(start: datetime | None, column: str) -> Q:
    """Return the condition that keeps what belongs to the entries that are shown: all when `start` is None."""
    return Q(**{f"{column}__gte": start}) if start else Q(thread__isnull=False)


def _attempts(thread: UUID, ids: Iterable[str]) -> dict[str, list[Evidence]]:
    found: dict[str, list[Evidence]] = {}
    rows = evidence.assemble(
        Attempt.objects.filter(thread=thread, ai_message_id__in=ids).order_by("opened_at", "id"),
        AttemptOutcome.objects.filter(thread=thread, ai_message_id__in=ids).order_by("closed_at"),
    )
    for row in sorted(rows, key=lambda one: one.at):
        found.setdefault(row.row.ai_message_id, []).append(row)
    return found


def _effects(thread: UUID, ids: Iterable[str]) -> dict[Key, list[Message]]:
    found: dict[Key, list[Message]] = {}
    for message in Message.objects.filter(thread=thread, ai_message_id__in=ids).order_by("id"):
        if message.ai_message_id is not None and message.call_index is not None:
            found.setdefault((message.ai_message_id, message.call_index), []).append(message)
    return found


def _people(messages: list[StaffMessage], escalations: list[Escalation]) -> Iterable[int | None]:
    yield from (message.author for message in messages)
    for row in escalations:
        yield row.claimed_by
        yield row.decision.decided_by if hasattr(row, "decision") else None
