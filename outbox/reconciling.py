"""What the outbox and the provider disagree about: messages whose end nobody knows, and objects that nobody asked for."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Literal

from django.conf import settings
from django.utils import timezone

from ledger import sentences
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Fact, Get, Looking, Row
from outbox import exits, gateway, handlers, sweeps, transitions

# At the provider, as far as it was looked up: the money moved, it cannot move any more, it still may, or nothing is there.
Verdict = Literal["moved", "refused", "open", "absent", "unknown"]
MOVED = frozenset(transitions.DONE)
REFUSED = frozenset(transitions.TAKEN_BACK)
EXITS = ("adopt", "resend", "settle_rejected", "compensate")
NOT_LOOKED_UP = "not looked up yet"
# Notices that nobody gets are for admins; what a person has asked for is under way, unless it came to nothing. What a worker
# looks up just now is as unknown as it was.
UNSETTLED = """
SELECT m.*, e.on_behalf_of, d.outcome AS looked FROM public.outbox_message m
LEFT JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
LEFT JOIN LATERAL (SELECT outcome FROM public.outbox_delivery WHERE message_id = m.id AND step IN ('lookup', 'webhook')
                   ORDER BY id DESC LIMIT 1) d ON true
WHERE m.state IN ('ready', 'leased', 'accepted', 'uncertain', 'dead') AND m.repeat <> 'harmless'
  AND (m.state = 'dead' OR m.compensation_needed
       OR coalesce(m.claimed_from, m.state) = 'uncertain' AND coalesce(m.first_sent_at, m.created_at) < now() - %(quiet)s)
  AND NOT EXISTS (SELECT FROM public.outbox_request r WHERE r.message_id = m.id AND (r.carried_out_at IS NULL
                  OR m.state <> 'dead' AND r.carried_out_at > now() - %(quiet)s AND r.outcome NOT LIKE %(nothing)s))
ORDER BY m.id
"""
OF_STRAYS = """
SELECT m.*, e.on_behalf_of FROM public.outbox_message m LEFT JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
WHERE m.id = ANY(%(ids)s)
"""


def unsettled(looking: Looking) -> Iterator[Disagreement]:
    """Yield the messages whose outcome is not known and will not become known by itself."""
    for row in looking.rows(UNSETTLED, nothing=f"{exits.NOT_POSSIBLE}%"):
        yield of_message(SimpleNamespace(**row), looked=row["looked"])


def of_message(message: Any, *, looked: str | None) -> Disagreement:
    """Return the disagreement about a message, a row or a model; `looked` is the outcome of its last look-up."""
    about = handlers.sentence(topic=message.topic, payload=message.payload)
    return Disagreement(
        object=f"message:{message.id}",
        about=about,
        sentence=_sentence(message, verdict(message, looked=looked)),
        detail=_detail(message),
        facts=tuple(facts(message, looked=looked)),
        exits=EXITS,
        message=message.id,
        subject=message.subject,
        thread=message.thread,
        ai_message_id=message.ai_message_id,
        requested_by=getattr(message, "on_behalf_of", None),
        amount_minor=message.payload.get("amount_minor"),
        currency=message.payload.get("currency", ""),
    )


def verdict(message: Any, *, looked: str | None) -> Verdict:
    """Return what the provider shows, as far as it was looked up."""
    status = (message.seen or {}).get("status")
    if status in MOVED:
        return "moved"
    if status in REFUSED:
        return "refused"
    if status:
        return "open"
    return "absent" if looked == "absent" else "unknown"


def facts(message: Any, *, looked: str | None) -> Iterator[Fact]:
    """Yield what we believe beside what the provider was seen to say."""
    seen = message.seen or {}
    blank = "nothing of ours" if looked == "absent" else "—"
    yield _amount(message, seen, blank=blank)
    yield Fact(name="Our id", ours=str(message.uid), theirs=str((seen.get("metadata") or {}).get("backstop_uid") or blank))
    status = str(seen.get("status") or (blank if looked == "absent" else NOT_LOOKED_UP)).replace("_", " ")
    yield Fact(name="Outcome", ours=message.state, theirs=status, differs=message.state != status)
    theirs = str(seen.get("id") or blank)
    ours = message.provider_id or "none stored"
    yield Fact(name="Provider object", ours=ours, theirs=theirs, differs=bool(seen) and ours != theirs)


def _amount(message: Any, seen: Mapping[str, Any], *, blank: str) -> Fact:
    """Return the amount as it was asked for, and as the provider has it, which counts some currencies in other units."""
    params, payload = message.steps[0]["params"], message.payload
    minor, currency = payload.get("amount_minor"), payload.get("currency", "")
    ours = sentences.money(minor, currency) if minor is not None else "none"
    same = seen.get("amount") == params.get("amount")
    theirs = (
        blank
        if not seen
        else ours
        if same
        else f"{seen.get('amount')} {str(seen.get('currency', '')).upper()} (its smallest unit)"
    )
    return Fact(name="Amount", ours=ours, theirs=theirs, differs=bool(seen) and not same)


def _sentence(message: Any, found: Verdict) -> str:
    who = message.destination.capitalize()
    says = {
        "moved": f" {who} says it was.",
        "refused": f" {who} says it was not, and never will be.",
        "open": f" {who} has it, and has not finished it.",
        "absent": f" {who} shows nothing of it.",
        "unknown": "",
    }[found]
    about = handlers.sentence(topic=message.topic, payload=message.payload)
    return f"We do not know whether this was carried out: {about[:1].lower()}{about[1:]}.{says}"


def _detail(message: Any) -> str:
    if message.compensation_needed:
        return "It may have happened, and may not be repeated: a person has to find out."
    if message.state == "dead":
        why = f" The last answer: {message.last_error.removeprefix('gave up: ')}." if message.last_error else ""
        tries = "1 try" if message.attempts == 1 else f"{message.attempts} tries"
        return f"The outbox gave up after {tries}.{why} It was not sent again."
    return "No usable answer came. It is looked up now and then, and was not sent again."


def strays(looking: Looking) -> Iterator[Disagreement]:
    """Yield the provider's objects of the last days that do not fit to our messages, and messages without their object."""
    assert looking.get is not None  # a scan leaves a check out that it cannot do
    found = list(sweeps.sweep(looking.conn, looking.get, since=timezone.now() - sweeps.LAST))
    known = {row["id"]: row for row in looking.rows(OF_STRAYS, ids=[one.message for one in found if one.message is not None])}
    for one in found:
        message = known.get(one.message)
        yield _of_stray(one, message=message, ways=_ways(looking, one, message=message))


def _ways(looking: Looking, stray: sweeps.Stray, *, message: Row | None) -> tuple[str, ...]:
    """Return how it can be settled from here: only an object that is what was asked for has a word that books can follow."""
    if stray.kind != "contradicts" or message is None:
        return ("compensate",)
    handler = handlers.find(message["topic"])
    if message["state"] == "succeeded":  # the provider takes it back
        return ("compensate",) if handler.take_back is handlers.untouched else ("adopt", "compensate")
    owed = handler.give_back is None or handler.owed(looking.conn, message=message)
    return ("adopt", "compensate") if owed else ("adopt", "refund", "compensate")


def _of_stray(stray: sweeps.Stray, *, message: Row | None, ways: tuple[str, ...]) -> Disagreement:
    row = message or {}
    status = str(stray.seen.get("status") or "not there").replace("_", " ")
    about = handlers.sentence(topic=row["topic"], payload=row["payload"]) if row else stray.object_id
    name, who = f"M-{row['id']}" if row else "", str(row.get("destination", "The provider")).capitalize()
    sentence = {
        "no_message": f"{who} has {stray.object_id} with an id of ours that no message has.",
        "no_object": f"Message {name} succeeded, but {who} knows no {stray.object_id}.",
        "differs": f"{who} has {stray.object_id} for message {name}, but it is not what was asked for.",
        "twice": f"Two objects at {who} carry the id of message {name}: its money may have moved twice.",
        "contradicts": f"Message {name} is {row.get('state')} here, but {who} says {status} of {stray.object_id}.",
    }[stray.kind]
    return Disagreement(
        object=f"uid:{stray.uid}" if stray.kind == "twice" else f"object:{stray.object_id}",  # its own object may differ besides
        about=about,
        sentence=sentence,
        facts=tuple(_facts_of_stray(stray, message=row, status=status)),
        exits=ways,
        message=stray.message,
        subject=row.get("subject"),
        thread=row.get("thread"),
        ai_message_id=row.get("ai_message_id"),
        requested_by=row.get("on_behalf_of"),
        amount_minor=(row.get("payload") or {}).get("amount_minor"),
        currency=(row.get("payload") or {}).get("currency", ""),
    )


def _facts_of_stray(stray: sweeps.Stray, *, message: Row, status: str) -> Iterator[Fact]:
    asked, has = (_in_smallest(one) for one in (stray.asked, stray.seen))
    yield Fact(name="Amount", ours=asked, theirs=has, differs=asked != has)
    state = str(message.get("state") or "no message")
    yield Fact(name="Outcome", ours=state, theirs=status, differs=stray.kind in ("contradicts", "no_object", "no_message"))
    own = str(message.get("provider_id") or "none stored")
    yield Fact(name="Provider object", ours=own, theirs=stray.object_id, differs=own != stray.object_id)
    yield Fact(name="Our id", ours=stray.uid if message else "unknown", theirs=stray.uid, differs=not message)


def _in_smallest(one: Mapping[str, Any]) -> str:
    """Return an amount in the provider's units, which are not always ours."""
    return f"{one['amount']} {str(one.get('currency') or '').upper()}".strip() if one.get("amount") is not None else "none"


def provider() -> Get | None:
    """Return what asks the provider, one GET at a time; None in a process that has no key."""
    return gateway.get if settings.STRIPE_API_KEY else None


CHECKS = (
    Check(
        name="outbox.messages",
        holds="Every message has an end that is known.",
        mark=Mark(state="uncertain", icon="circle-question-mark", word="Outcome unknown"),
        ours="We believe",
        theirs="The provider says",
        look=unsettled,
        counts={"messages": "SELECT count(*) FROM public.outbox_message"},
    ),
    Check(
        name="outbox.provider",
        holds="Every object of the provider has its message.",
        mark=Mark(state="uncertain", icon="git-compare-arrows", word="Provider differs"),
        ours="The outbox says",
        theirs="The provider says",
        look=strays,
        counts={"days at the provider": f"SELECT {sweeps.LAST.days}"},
        provider=True,
    ),
)
