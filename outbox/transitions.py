"""Which state a message takes after which event. Pure; the SQL verbs take their `WHERE state = ANY(…)` from here."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Event(StrEnum):
    """What happens to a message. It takes the lease, the provider's own word, or a person's request."""

    CLAIM = "claim"
    SEND = "send"  # written before each call
    ADVANCE = "advance"  # the step is done, the next one follows in the same lease
    SUCCEED = "succeed"
    SUCCEED_LATE = "succeed_late"  # the money moved, although the provider, or a person, had said that it does not
    REJECT = "reject"
    OVERTURN = "overturn"  # the provider takes a success back: the message stays what it was, the books get a reversal
    ACCEPT = "accept"  # the provider has it, not final
    NOTE = "note"  # the same, learnt without a lease
    NOT_EXECUTED = "not_executed"  # provably, and no earlier try may have been executed
    UNKNOWN = "unknown"
    PUT_BACK = "put_back"  # nothing was learnt: a look-up without an answer
    EXPIRE_UNSENT = "expire_unsent"  # the lease ran out before anything left
    EXPIRE_SENT = "expire_sent"  # the lease ran out after the write-ahead of a call
    BURY = "bury"
    SKIP = "skip"  # not wanted any more, and never sent
    CANCEL = "cancel"  # only before the first send: see the constraint
    REPLAY_UNSENT = "replay_unsent"
    REPLAY_SENT = "replay_sent"
    RESEND = "resend"  # looked up first, then sent with the key that it has
    SETTLE_REJECTED = "settle_rejected"  # a person's: nothing is there, or nothing that can still succeed
    COMPENSATE = "compensate"  # a person's: it was put right elsewhere


class NotAllowed(Exception):
    """The message's state does not allow this."""


# Those of Message.State, as words: whoever enqueues comes by here, also before Django knows any models.
STATES = ("ready", "leased", "accepted", "uncertain", "succeeded", "rejected", "dead", "cancelled")
READY, LEASED, ACCEPTED, UNCERTAIN, SUCCEEDED, REJECTED, DEAD, CANCELLED = STATES

FINAL = (SUCCEEDED, REJECTED, CANCELLED)
DONE = ("succeeded", "issued")  # what the provider calls an object that did what it was asked for
TAKEN_BACK = ("failed", "canceled", "void")  # one whose success it took back
CLAIMABLE = (READY, UNCERTAIN, ACCEPTED)
# An older message in one of these keeps the later ones of its aggregate waiting.
UNFINISHED = (READY, LEASED, ACCEPTED, UNCERTAIN, DEAD)
# The provider's word about an object is true whatever we had believed.
ADOPTING = (READY, LEASED, ACCEPTED, UNCERTAIN, DEAD)

# None stands for the state that the message was claimed from.
TARGETS: Mapping[Event, tuple[tuple[str, ...], str | None]] = MappingProxyType(
    {
        Event.CLAIM: (CLAIMABLE, LEASED),
        Event.SEND: ((LEASED,), LEASED),
        Event.ADVANCE: ((LEASED,), LEASED),
        Event.SUCCEED: (ADOPTING, SUCCEEDED),
        Event.SUCCEED_LATE: ((REJECTED, CANCELLED), SUCCEEDED),
        Event.REJECT: (ADOPTING, REJECTED),
        Event.OVERTURN: ((SUCCEEDED,), SUCCEEDED),
        Event.ACCEPT: ((LEASED,), ACCEPTED),
        Event.NOTE: ((UNCERTAIN, DEAD), ACCEPTED),
        Event.NOT_EXECUTED: ((LEASED,), READY),
        Event.UNKNOWN: ((LEASED,), UNCERTAIN),
        Event.PUT_BACK: ((LEASED,), None),
        Event.EXPIRE_UNSENT: ((LEASED,), None),
        Event.EXPIRE_SENT: ((LEASED,), UNCERTAIN),
        Event.BURY: ((LEASED,), DEAD),
        Event.SKIP: ((LEASED,), CANCELLED),
        Event.CANCEL: ((READY,), CANCELLED),
        Event.REPLAY_UNSENT: ((DEAD,), READY),
        Event.REPLAY_SENT: ((DEAD,), UNCERTAIN),
        Event.RESEND: ((UNCERTAIN, DEAD), UNCERTAIN),
        Event.SETTLE_REJECTED: ((UNCERTAIN, DEAD), REJECTED),
        Event.COMPENSATE: ((DEAD,), REJECTED),
    }
)
# What the provider says of an object, whoever brings its word: an event of its own, a look-up, a person.
WORDS: Mapping[str, tuple[Event, ...]] = MappingProxyType(
    {
        "succeeded": (Event.SUCCEED, Event.SUCCEED_LATE),
        "rejected": (Event.REJECT, Event.OVERTURN),
        "accepted": (Event.NOTE,),
    }
)


def sources(event: Event) -> list[str]:
    """Return the states in which the event may happen."""
    return list(TARGETS[event][0])


def told(state: str, word: str) -> Event | None:
    """Return what the provider's word about an object is to a message in this state; None when it says nothing new."""
    return next((event for event in WORDS.get(word, ()) if state in sources(event)), None)


def after(state: str, event: Event, *, claimed_from: str | None = None) -> str:
    """Return the state after the event; raise NotAllowed."""
    allowed, target = TARGETS[event]
    if state not in allowed:
        raise NotAllowed(f"a message that is {state} cannot {event}")
    if target is not None:
        return target
    if claimed_from is None or claimed_from not in CLAIMABLE:
        raise NotAllowed(f"a message claimed from {claimed_from} cannot go back there")
    return claimed_from
