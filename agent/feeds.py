"""The feed of a conversation: messages, batch cards, notices and escalations in the order in which they happened. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from django.utils import timezone

from agent import cards, histories, stepping_in, waits
from agent.cards import Card
from agent.conversations import Rows
from agent.histories import decided
from agent.models import Notice, StaffMessage, TranscriptEntry
from escalations.models import Escalation
from ledger import marks

ANSWER = "A reviewer answers: "
DECISION = "decision:"  # begins the ids of messages that a person's decision put into the thread
NOTICE = "notice-"  # begins the keys of news from outside
HANDS = {"stepped_in": "hand", "handed_back": "bot"}
TOLD = ("_dead", "_rejected")  # end the kinds of notices that say what their escalation would say again
ICONS = {
    "confirmed": "check-check",
    "applied": "check",
    "failed": "ban",
    "uncertain": "circle-question-mark",
    "held": "hand",
    "undone": "undo-2",
    "sent": "send",
    "queued": "clock",
    "info": "eye",
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of what the agent said or did: text, or a card."""

    text: str = ""
    card: Card | None = None


@dataclass(kw_only=True)
class Item:
    """One entry of the feed."""

    kind: Literal["day", "notice", "staff", "reviewer", "person", "agent"]  # person: who stepped in for the agent
    key: str  # stable, for the browser to know it again
    at: datetime
    name: str = ""
    about: str = ""  # model and prompt version
    state: str = ""  # of a notice
    icon: str = ""
    text: str = ""
    parts: list[Part] = field(default_factory=list)


def feed(rows: Rows, *, live: bool, shown: Iterable[StaffMessage] = ()) -> list[Item]:
    """Return the items, oldest first. `shown` are sent messages that the transcript does not hold yet."""
    items = [*_transcript(rows, live=live), *_notices(rows), *_escalations(rows)]
    items.sort(key=lambda item: item.at)  # stable: the transcript's own order stays
    items += [_staff(message, rows) for message in shown]
    return list(_with_days(_numbered(_grouped(_after_the_turn(items)))))


def _after_the_turn(items: list[Item]) -> Iterator[Item]:
    """Put news from outside behind the turn it arrived in: the agent's words were written without knowing it."""
    waiting: list[Item] = []
    for item in items:
        if item.key.startswith(NOTICE):
            waiting.append(item)
            continue
        if item.kind != "agent":
            yield from waiting
            waiting = []
        yield item
    yield from waiting


def untold(rows: Rows) -> list[StaffMessage]:
    """Return the messages that the agent has taken but whose place in the transcript is not written yet."""
    told = {_staff_id(entry.message_id) for entry in rows.entries}
    return [message for message in rows.messages if message.state == StaffMessage.State.TAKEN and message.id not in told]


def _transcript(rows: Rows, *, live: bool) -> Iterator[Item]:
    messages = {message.id: message for message in rows.messages}
    for place, entry in enumerate(rows.entries):
        if entry.message_id.startswith(DECISION):
            yield _decided(entry, rows)
        elif entry.role == "human":
            yield _human(entry, messages.get(_staff_id(entry.message_id)), rows)
        else:
            yield _agent(entry, rows, live=live and place == len(rows.entries) - 1)


def _human(entry: TranscriptEntry, message: StaffMessage | None, rows: Rows) -> Item:
    name = rows.name(message.author) if message else "Staff"
    return Item(kind="staff", key=entry.message_id, at=entry.written_at, name=name, text=message.text if message else entry.text)


def _decided(entry: TranscriptEntry, rows: Rows) -> Item:
    """Return a reviewer's answer, or the line that closed the matter."""
    if entry.role != "human":
        icon = "user-round-check"
        return Item(kind="notice", key=entry.message_id, at=entry.written_at, state="info", icon=icon, text=entry.text)
    number = entry.message_id.removeprefix(DECISION)
    by = next((row.decision.decided_by for row in rows.escalations if decided(row) and str(row.decision.id) == number), None)
    name = rows.name(by) if by else "A reviewer"
    return Item(kind="reviewer", key=entry.message_id, at=entry.written_at, name=name, text=entry.text.removeprefix(ANSWER))


def _staff(message: StaffMessage, rows: Rows) -> Item:
    return Item(kind="staff", key=f"staff:{message.id}", at=message.sent_at, name=rows.name(message.author), text=message.text)


def _agent(entry: TranscriptEntry, rows: Rows, *, live: bool) -> Item:
    parts = [Part(text=entry.text)] if entry.text.strip() else []
    if entry.tool_calls:
        parts += [Part(card=card) for card in cards.cards(_step(entry, rows, live=live))]
    version = f"prompt {entry.prompt_version.rpartition(' ')[2]}" if entry.prompt_version else ""
    about = " · ".join(filter(None, [entry.model, version]))
    return Item(kind="agent", key=entry.message_id, at=entry.written_at, name="Agent", about=about, parts=parts)


def _step(entry: TranscriptEntry, rows: Rows, *, live: bool) -> cards.Step:
    name = entry.message_id
    return cards.Step(
        ai_message_id=name,
        calls=entry.tool_calls,
        attempts=rows.attempts.get(name, ()),
        executions={index: row for (message, index), row in rows.executions.items() if message == name},
        effects={index: found for (message, index), found in rows.effects.items() if message == name},
        undos=rows.undos,
        escalations=[row for row in rows.escalations if row.ai_message_id == name],
        names=rows.names,
        signers=rows.signers,
        waits=waits.of(rows),
        live=live,
    )


def _notices(rows: Rows) -> Iterator[Item]:
    for notice in rows.notices:
        if notice.kind == stepping_in.SAID:
            yield _said(notice, rows)
            continue
        icon = HANDS.get(notice.kind) or ICONS.get(notice.state, "eye")
        yield Item(
            kind="notice", key=f"{NOTICE}{notice.id}", at=notice.created_at, state=notice.state, icon=icon, text=notice.text
        )


def _said(notice: Notice, rows: Rows) -> Item:
    key = f"said:{notice.object}"
    return Item(kind="person", key=key, at=notice.created_at, name=rows.name(notice.author), text=notice.text)


def _escalations(rows: Rows) -> Iterator[Item]:
    """Say what waits for a person, and what was decided.

    Held batches and questions have their cards for the first, ends of an effect their notices; answers, and what a decision
    ends, come to stand in the transcript itself.
    """
    told = {notice.object for notice in rows.notices if notice.kind.endswith(TOLD)}
    spoken = {entry.message_id for entry in rows.entries}
    for row in rows.escalations:
        if rows.cut and row.opened_at < rows.entries[0].written_at:
            continue
        has_card = row.kind in ("approval", "asked")
        if not has_card and (row.interrupt_id or f"message:{row.payload.get('message_id')}" not in told):
            yield Item(kind="notice", key=f"escalation-{row.id}", at=row.opened_at, state="held", icon="hand", text=_reason(row))
        if decided(row) and f"{DECISION}{row.decision.id}" not in spoken:
            yield _decision(row, rows)


def _reason(row: Escalation) -> str:
    reason = str(row.payload.get("reason") or "A person has to look at this.")
    return f"{reason} A reviewer was asked." if row.interrupt_id else reason


def _decision(row: Escalation, rows: Rows) -> Item:
    decision = row.decision
    mark = marks.DECISIONS[decision.kind]
    return Item(
        kind="notice",
        key=f"decision-{row.id}",
        at=decision.decided_at,
        state=mark.state,
        icon=mark.icon,
        text=histories.said(row, names=rows.names, signers=rows.signers),
    )


def _grouped(items: Iterable[Item]) -> Iterator[Item]:
    """Join what the agent said in a row into one entry."""
    current: Item | None = None
    for item in items:
        if current and current.kind == item.kind == "agent":
            current.parts += item.parts
            continue
        if current:
            yield current
        current = item
    if current:
        yield current


def _numbered(items: Iterable[Item]) -> Iterator[Item]:
    """Number the attempts of each request from 1."""
    number = 0
    for item in items:
        if item.kind in ("staff", "reviewer"):
            number = 0
        for place, part in enumerate(item.parts):
            if part.card and part.card.attempt_id and part.card.mark != cards.READ:
                number += 1
                item.parts[place] = Part(card=part.card.numbered(number))
        yield item


def _with_days(items: Iterable[Item]) -> Iterator[Item]:
    day: date | None = None
    for item in items:
        if (found := timezone.localtime(item.at).date()) != day:
            day = found
            yield Item(kind="day", key=f"day-{day}", at=item.at)
        yield item


def _staff_id(message_id: str) -> UUID | None:
    """Return the staff message that a transcript entry is made from."""
    try:
        return UUID(message_id[-36:])
    except ValueError:
        return None
