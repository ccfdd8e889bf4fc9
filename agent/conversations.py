"""Reading conversations for pages: everything one of them is drawn from, in a number of queries that never grows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from agent.models import Conversation, Draft, Feed, Notice, StaffMessage, Thread, TranscriptEntry
from agent.stepping_in import Person
from escalations import policies, presence, standings
from escalations.models import Escalation, Presence, Signature
from ledger import evidence, people
from ledger.evidence import Evidence
from ledger.models import Attempt, AttemptOutcome, Execution
from ledger.roles import ADMIN, roles_of
from outbox import sends_after
from outbox.models import Message
from outbox.sends_after import Undo

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
    undos: dict[int, Undo] = field(default_factory=dict)  # what can be taken back just now, by message
    signers: dict[int, list[int]] = field(default_factory=dict)  # by revision, in order
    proposal: standings.Standing | None = None  # what the undecided question is about, as reviewers have it now
    looking: list[Presence] = field(default_factory=list)  # who has its page open
    read_at: datetime = field(default_factory=timezone.now)
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
        return _waited_for(self.escalations)

    @property
    def runs(self) -> bool:
        """Return whether a worker has the thread right now."""
        row = self.thread
        running = row is not None and row.state == Thread.State.RUNNING
        return running and not (row and row.leased_until and row.leased_until < self.read_at)

    @property
    def person(self) -> Person | None:
        """Return who has stepped in, or None while the agent answers."""
        row = self.thread
        if row is None or row.stepped_in_by is None or row.stepped_in_at is None:
            return None
        return Person(user=row.stepped_in_by, name=self.name(row.stepped_in_by), since=row.stepped_in_at)

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
    escalations = list(Escalation.objects.filter(thread=thread).select_related("decision", "decision__revision").order_by("id"))
    waits = _waited_for(escalations)
    proposal = standings.newest([waits.id]).get(waits.id) if waits else None
    looking = _looking(waits)
    signers = _signers(thread)
    notices = list(Notice.objects.filter(_since(since, "created_at"), thread=thread).order_by("id"))
    state = Thread.objects.filter(thread=thread).first()
    ids = {entry.message_id for entry in entries if entry.tool_calls}
    effects = _effects(thread, ids)
    return Rows(
        conversation=conversation,
        thread=state,
        entries=entries,
        messages=messages,
        notices=notices,
        attempts=_attempts(thread, ids),
        executions={
            (row.ai_message_id, row.call_index): row for row in Execution.objects.filter(thread=thread, ai_message_id__in=ids)
        },
        effects=effects,
        undos=sends_after.offered(message for found in effects.values() for message in found),
        escalations=escalations,
        draft=Draft.objects.filter(thread=thread).values_list("text", flat=True).first() or "",
        seq=newest(thread),
        signers=signers,
        proposal=proposal,
        looking=looking,
        names=people.names(
            [
                *(conversation.created_by_id, state and state.stepped_in_by),
                *_people(messages, escalations),
                *(notice.author for notice in notices),
                *(user for users in signers.values() for user in users),
                *(proposal.signers if proposal else ()),
                *(one.person for one in looking),
            ]
        ),
        subject=people.subject_names([conversation.subject]).get(conversation.subject, f"Customer {conversation.subject}"),
        cut=cut,
    )


def questions(subject: int) -> list[Escalation]:
    """Return the newest questions about a customer that were put to a person, in any conversation."""
    return list(Escalation.objects.filter(subject=subject).select_related("decision").order_by("-id")[:MOST_QUESTIONS])


def can_withdraw(rows: Rows, *, user: Any) -> bool:
    """Return whether this person asked for what waits, and may still take it back."""
    row = rows.undecided
    if row is None or row.state not in ("open", "claimed"):
        return False
    if "withdraw" not in policies.allowed_decisions(kind=row.kind, state=row.state, payload=row.payload):
        return False
    wrote = StaffMessage.objects.filter(thread=row.thread, author=user.pk, state=StaffMessage.State.TAKEN)
    return row.requested_by == user.pk or bool(wrote.exists())


def can_undo(conversation: Conversation, *, user: Any) -> bool:
    """Return whether this person may take back what the conversation sends: its own staff, and admins."""
    if ADMIN in roles_of(user) or conversation.created_by_id == user.pk:
        return True
    return StaffMessage.objects.filter(thread=conversation.thread, author=user.pk).exclude(state="cancelled").exists()


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
        if hasattr(row, "decision"):
            yield row.decision.decided_by
            yield row.decision.revision.author if row.decision.revision else None


def _waited_for(escalations: Sequence[Escalation]) -> Escalation | None:
    def waits(row: Escalation) -> bool:
        return row.state in ("open", "claimed", "decided") or (row.state == "expired" and row.resumed_at is None)

    waiting = [row for row in escalations if row.interrupt_id and waits(row)]
    return waiting[-1] if waiting else None


def _looking(waits: Escalation | None) -> list[Presence]:
    if waits is None:
        return []
    return list(Presence.objects.filter(escalation=waits, seen_at__gte=timezone.now() - presence.GONE).order_by("person"))


def _signers(thread: UUID) -> dict[int, list[int]]:
    """Return who signed what was decided, as it was decided."""
    same = Q(escalation__thread=thread, preview__digest=F("escalation__decision__preview__digest"))
    found: dict[int, list[int]] = {}
    for revision, reviewer in Signature.objects.filter(same).order_by("id").values_list("revision_id", "reviewer"):
        found.setdefault(revision, []).append(reviewer)
    return found
