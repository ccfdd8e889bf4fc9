"""Any id, ours or the provider's, and the page that shows it."""

import re
from collections.abc import Callable, Iterator
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from ledger import filters, links, people, wiring
from ledger.models import Attempt, AttemptOutcome, Execution
from ledger.roles import ADMIN, REVIEWER

TRAIL = frozenset({ADMIN, REVIEWER})
SUBJECT = "customer"  # every call names its subject so
Finder = Callable[[str, frozenset[str]], str | None]


def find(text: str, *, roles: frozenset[str]) -> str | None:
    """Return the address of the page about this id that the roles may open; None when there is none."""
    text = text.strip()
    return next(_addresses(text, roles), None) if text and "\x00" not in text and len(text) <= 200 else None


def _page(route: str, key: object) -> str:
    return str(reverse(route, args=[key]))


def _addresses(text: str, roles: frozenset[str]) -> Iterator[str]:
    for finder in (_numbered, _by_uuid, _by_name, _by_words):
        if found := finder(text, roles):
            yield found


def _numbered(text: str, roles: frozenset[str]) -> str | None:
    """C-12 or C12 is a conversation, E-5 an escalation, M-7 an outbox message."""
    kinds = {
        "C": ("agent.Conversation", "agent:conversation", True),
        "E": ("escalations.Escalation", "escalations:escalation", bool(roles & TRAIL)),
        "M": ("outbox.Message", "outbox:message", ADMIN in roles),
    }
    label, route, allowed = kinds.get(text[:1].upper(), ("", "", False))
    number = filters.numbered(text[1:].strip().removeprefix("-"), "") if allowed else None
    if number is None or not links.model(label).objects.filter(id=number).exists():
        return None
    return _page(route, number)


def _by_uuid(text: str, roles: frozenset[str]) -> str | None:
    """An attempt, a thread, or an outbox message."""
    uid = filters.as_uuid(text)
    if uid is None:
        return None
    if conversation := links.conversations([uid]).get(uid):
        return _page("agent:conversation", conversation)
    if roles & TRAIL and _is_attempt(uid):
        return _page("ledger:attempt", uid)
    return _message_page(Q(uid=uid), roles)


def _is_attempt(uid: UUID) -> bool:
    return bool(Attempt.objects.filter(id=uid).exists() or AttemptOutcome.objects.filter(attempt_id=uid).exists())


def _by_name(text: str, roles: frozenset[str]) -> str | None:
    """The provider's object (pi_…, re_…), its event, one of our keys, or a call or message of the model."""
    return _message_page(Q(provider_id=text) | Q(dedupe_key=text), roles) or _event_page(text, roles) or _call_page(text, roles)


def _event_page(text: str, roles: frozenset[str]) -> str | None:
    event = links.model("outbox.WebhookEvent").objects.filter(event_id=text).first()
    return _message_page(Q(provider_id=event.object_id), roles) if event else None


def _message_page(wanted: Q, roles: frozenset[str]) -> str | None:
    """The outbox is the admin's; a reviewer gets the attempt that promised the message, support the conversation."""
    message = links.model("outbox.Message").objects.filter(wanted).order_by("id").first()
    if message is None:
        return None
    if ADMIN in roles:
        return _page("outbox:message", message.id)
    if roles & TRAIL:
        return _attempt_page(Q(thread=message.thread, ai_message_id=message.ai_message_id))
    conversation = links.conversations([message.thread]).get(message.thread) if message.thread else None
    return _page("agent:conversation", conversation) if conversation else None


def _call_page(text: str, roles: frozenset[str]) -> str | None:
    if not roles & TRAIL:
        return None
    return _attempt_page(Q(tool_call_id=text) | Q(ai_message_id=text))


def _attempt_page(wanted: Q) -> str | None:
    attempt = Execution.objects.filter(wanted).values_list("attempt_id", flat=True).first()
    return _page("ledger:attempt", attempt) if attempt else None


def _by_words(text: str, roles: frozenset[str]) -> str | None:
    """A thing of the domain by its number, such as "invoice 20": the first call whose result names it, else its customer."""
    found = re.fullmatch(r"([a-z]+(?: [a-z]+)?)[ #-]*([1-9][0-9]{0,17})", text.lower())
    if found is None:
        return None
    thing, number = found[1], int(found[2])
    if thing == SUBJECT:
        return _subject_page(number, roles) if people.subject_names([number]) else None
    named = {f"{thing.replace(' ', '_')}_id": number}
    call = filters.newest(Execution.objects.all(), column="committed_at").filter(result__contains=named)
    if first := call.order_by("committed_at").first():
        return _trail_page(first, roles)
    subject = wiring.plugged("BACKSTOP_SUBJECTS").owner(thing, number)
    return _subject_page(subject, roles) if subject else None


def _trail_page(call: Execution, roles: frozenset[str]) -> str | None:
    if roles & TRAIL:
        return _page("ledger:attempt", call.attempt_id)
    conversation = links.conversations([call.thread]).get(call.thread)
    return _page("agent:conversation", conversation) if conversation else None


def _subject_page(number: int, roles: frozenset[str]) -> str:
    """What was done for a customer, for who may read the trail; their conversations for everyone else."""
    if roles & TRAIL:
        return f"{reverse('ledger:executions')}?customer={number}"
    return f"{reverse('agent:conversations')}?only=all&q={number}"
