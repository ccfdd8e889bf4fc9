"""The tray under the inbox: what is selected, and what deciding it together would do, item by item."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from escalations import conversations, policies, questions, standings
from escalations.models import Escalation
from escalations.standings import Standing
from ledger import people, sentences
from ledger.marks import Mark
from ledger.spans import clock

TOGETHER = ("approve", "reject", "answer", "retry", "close")  # what can be decided of several at once
MOST = 50  # items
UNMADE = Mark(state="queued", icon="clock", word="Preview is being made")
OUTCOMES = {
    "fails": Mark(state="failed", icon="x", word="Would fail"),
    "invalid": Mark(state="failed", icon="ban", word="Not valid"),
    "refused": Mark(state="failed", icon="ban", word="Refused by a rule"),
    "unavailable": Mark(state="queued", icon="clock", word="No preview: the database was busy"),
}


@dataclass(frozen=True, kw_only=True)
class Item:
    """One selected escalation. Only what was shown as clean can be approved: its `value` names that preview."""

    id: int
    customer: str
    title: str
    amount: str
    effect: str
    mark: Mark
    may_approve: bool
    value: str  # as the form sends it back: id, revision's number, preview's id when it may be approved


@dataclass(frozen=True, kw_only=True)
class Tray:
    """What is selected. `decisions` are what all of it allows; none when the kinds differ."""

    items: list[Item]
    decisions: tuple[str, ...]
    mixed: bool
    summary: str
    approvable: int
    gone: int  # selected, and decided by now
    version: str  # changes with whatever is shown


def tray(ids: Sequence[int], *, user: int, now: datetime) -> Tray | None:
    """Return the tray of the undecided ones among the selected; None when nothing is selected. Six queries at most."""
    wanted = list(dict.fromkeys(ids))[:MOST]
    if not wanted:
        return None
    rows = list(Escalation.objects.filter(id__in=wanted, state__in=["open", "claimed"]).order_by("due_at", "id"))
    known = standings.newest([row.id for row in rows])
    reader = _Reader(id=user, now=now, own=asked_by(rows, user=user), names=people.names(row.claimed_by for row in rows))
    customers = people.subject_names(row.subject for row in rows)
    items = [_item(row, known.get(row.id), customer=customers.get(row.subject or 0, ""), reader=reader) for row in rows]
    shared = together(rows, known)
    approvable = sum(item.may_approve for item in items) if "approve" in shared else 0
    return Tray(
        items=items,
        decisions=shared,
        mixed=len(rows) > 1 and not shared,
        summary=_summary(rows, [known[item.id] for item in items if item.may_approve], shared=shared),
        approvable=approvable,
        gone=len(wanted) - len(rows),
        version=_version(items),
    )


def together(rows: Sequence[Escalation], known: Mapping[int, Standing]) -> tuple[str, ...]:
    """Return what may be decided of all the rows at once: nothing unless they are of one kind that allows the same."""
    allowed = {(row.kind, _allowed(row, known.get(row.id))) for row in rows}
    return allowed.pop()[1] if len(allowed) == 1 else ()


def _allowed(row: Escalation, standing: Standing | None) -> tuple[str, ...]:
    revision = standing.revision if standing else 0
    possible = policies.allowed_decisions(kind=row.kind, state=row.state, payload=row.payload, revision=revision)
    return tuple(name for name in TOGETHER if name in possible)


def asked_by(rows: Sequence[Escalation], *, user: int) -> set[int]:
    """Return the ids of those escalations that came of the person's own words: a message, or an answer to the agent."""
    threads = [row.thread for row in rows]
    wrote = conversations.written_in(threads, user=user) | conversations.led_by(threads, user=user)
    return {row.id for row in rows if row.requested_by == user or row.thread in wrote}


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Who looks at the tray, which of its items they asked for, and the names of who holds some."""

    id: int
    now: datetime
    own: set[int]
    names: Mapping[int, str]


def _bar(row: Escalation, standing: Standing | None, *, reader: _Reader) -> Mark | None:
    """Return what keeps this reviewer from signing it here; None when nothing does."""
    holder = row.claimed_by if row.state == "claimed" and row.claimed_until and row.claimed_until > reader.now else None
    if holder and holder != reader.id:
        return Mark(state="held", icon="user-round-check", word=f"{reader.names.get(holder, 'Somebody')} holds it")
    if row.id in reader.own:
        return Mark(state="held", icon="users-round", word="You asked for it")
    if standing and reader.id in standing.signers:
        return Mark(state="held", icon="users-round", word="You signed it")
    if standing and (standing.author == reader.id or standing.as_person):
        return Mark(state="held", icon="pencil", word="Changed: sign it on its page")
    return None


def _item(row: Escalation, standing: Standing | None, *, customer: str, reader: _Reader) -> Item:
    bar = _bar(row, standing, reader=reader)
    calls = standing.calls if standing and standing.revision else row.payload.get("calls")
    title = questions.together(calls) if standing and calls else questions.title(row)
    may = bar is None and standing is not None and standing.clean
    return Item(
        id=row.id,
        customer=customer or f"E-{row.id}",
        title=title,
        amount=questions.amount(row),
        effect=_effect(row, standing),
        mark=bar or _mark(standing),
        may_approve=may,
        value=f"{row.id}:{standing.revision if standing else ''}:{standing.preview if standing and may else ''}",
    )


def _effect(row: Escalation, standing: Standing | None) -> str:
    """Return what approving would change and send, or why it would not go through."""
    if standing is None or standing.outcome is None:
        return questions.detail(row)
    if not standing.clean:
        return str(standing.failure.get("sentence") or questions.detail(row))
    leaves = [str(message.get("sentence") or message.get("topic", "")) for message in standing.messages]
    rows = len(standing.changes)
    return " · ".join(
        [f"{rows} row{'' if rows == 1 else 's'} change{'s' if rows == 1 else ''}", *(f"leaves: {text}" for text in leaves)]
    )


def _mark(standing: Standing | None) -> Mark:
    if standing is None:
        return Mark(state="queued", icon="clock", word="Nothing to preview")
    if not standing.clean:
        return OUTCOMES.get(standing.outcome or "", UNMADE)
    second = f", {len(standing.signers)} of {standing.needs} signed" if (standing.needs or 1) > 1 else ""
    return Mark(state="applied", icon="check", word=f"Ran clean at {clock(standing.made_at)}{second}")


def _summary(rows: Sequence[Escalation], clean: Sequence[Standing], *, shared: Sequence[str]) -> str:
    """Return one sentence about all of it."""
    if not shared:
        return "different kinds: decide them one by one" if len(rows) > 1 else "nothing to decide"
    if not clean:
        return questions.KINDS[rows[0].kind].word.lower()
    changed = sum(len(standing.changes) for standing in clean)
    messages = [message for standing in clean for message in standing.messages]
    leaving: Counter[str] = Counter()
    for payload in (message.get("payload") or {} for message in messages):
        if isinstance(payload.get("amount_minor"), int) and payload.get("currency"):
            leaving[payload["currency"]] += payload["amount_minor"]
    money = " and ".join(sentences.money(minor, currency) for currency, minor in sorted(leaving.items()))
    sent = (
        f"{money or 'nothing'} leaves in {len(messages)} message{'' if len(messages) == 1 else 's'}"
        if messages
        else "nothing leaves"
    )
    return " · ".join([*_alike(rows), f"{changed} rows change", sent])


def _alike(rows: Sequence[Escalation]) -> list[str]:
    """Say whether the same rules hold the same tools, when there are several."""
    if len(rows) < 2:
        return []
    rules = {
        tuple(sorted({str(v.get("rule")) for v in row.payload.get("verdicts") or () if v.get("action") == "hold"}))
        for row in rows
    }
    tools = {tuple(call.get("tool") for call in row.payload.get("calls") or ()) for row in rows}
    return ["same rule and tools" if len(rules) == len(tools) == 1 else "different rules or tools"]


def _version(items: Sequence[Item]) -> str:
    """Return a short text that is another one when anything of the tray reads differently."""
    shown = [(item.value, item.title, item.effect, item.mark.word) for item in items]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]
