"""What a domain declares for each topic: the requests that a message becomes, and what its outcome does."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection

from ledger import wiring
from outbox.outcomes import Outcome

# keyed: an idempotency key makes a repeat safe while the provider keeps it · harmless: repeat as often as you like ·
# never: an unknown outcome waits for a person.
Repeat = Literal["keyed", "harmless", "never"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request. `{provider_id}` in the path stands for the id that an earlier step's answer gave."""

    name: str
    method: Literal["POST"] = "POST"
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)  # text, integers, booleans, mappings and lists of them
    renewable: bool = False  # a new key can never move money twice: the step moves none, or its object moves it once


def always(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Say that a promised effect is wanted whatever happened since."""
    return True


def no_books(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Say that nothing stands otherwise, for a topic that no books are kept of."""
    return False


def untouched(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Leave the books as they are, for a topic whose successes are final."""
    return None


@dataclass(frozen=True, kw_only=True)
class Handler:
    """One topic. `settle` runs inside the settling transaction, for a final outcome only, and must be idempotent.

    It returns a sentence when a person has to know of what came of it, such as money that nobody owes.
    """

    topic: str
    destination: str
    repeat: Repeat
    steps: Callable[[Mapping[str, Any], UUID], list[Step]]
    settle: Callable[..., str | None]  # (conn: Connection, *, message: Mapping[str, Any], outcome: Outcome)
    take_back: Callable[..., str | None] = untouched  # the same, when the provider takes a success back
    # (conn, *, message) -> whether the books stand otherwise than the message does. If so they are put where its outcome can be
    # applied again; raises Refusal where they cannot follow it.
    reopen: Callable[..., bool] = no_books
    # (conn, *, message): whether what it takes is owed now; what is not can only be given back
    owed: Callable[..., bool] = always
    # (conn, *, message, reason) -> what was done: sends money back that was taken and is not owed, or raises Refusal
    give_back: Callable[..., str] | None = None
    wanted: Callable[..., bool] = always  # (conn, *, message): False withdraws what has not left yet; asked before each send
    asked_for: bool = True  # by somebody, who may take it back while it waits; not a notice, nor what an outcome brings about
    refusal_asks_person: bool = False  # what the provider refuses is put before a reviewer
    if_refused: str = ""  # what that means, in a sentence, where it is not that no money moved
    sentence: Callable[[Mapping[str, Any]], str]  # the payload in words: "Charge €480.00 to the card ending in 4242"


class UnknownTopic(LookupError):
    """No handler is declared for the topic."""


@cache
def every() -> tuple[Handler, ...]:
    """Return the installed handlers."""
    return tuple(handler for found in wiring.plugged_all("BACKSTOP_OUTBOX_HANDLERS") for handler in found)


def find(topic: str) -> Handler:
    """Return the handler of a topic; raise UnknownTopic."""
    for handler in every():
        if handler.topic == topic:
            return handler
    raise UnknownTopic(topic)


def asks_nothing(topic: str) -> bool:
    """Return whether a message of the topic is wanted whatever happened since."""
    return any(handler.topic == topic and handler.wanted is always for handler in every())


def destinations() -> list[str]:
    """Return the names of the destinations that messages leave to."""
    return sorted({handler.destination for handler in every()})


def sentence(*, topic: str, payload: Mapping[str, Any]) -> str:
    """Return what a message does, in words; its topic when no handler can say it any more."""
    try:
        return str(find(topic).sentence(payload))
    except (UnknownTopic, KeyError):  # KeyError: a payload from before the handler changed
        return topic


def refusals_ask_person() -> list[str]:
    """Return the topics of which a refusal is put before a reviewer."""
    return [handler.topic for handler in every() if handler.refusal_asks_person]


def if_refused(topic: str, *, otherwise: str = "No money moved.") -> str:
    """Return what a refusal of the topic means, in a sentence."""
    return next((handler.if_refused for handler in every() if handler.topic == topic and handler.if_refused), otherwise)


def frozen(handler: Handler, *, payload: Mapping[str, Any], uid: UUID) -> list[dict[str, Any]]:
    """Return the requests as the message keeps them, each with its idempotency key."""
    return [asdict(step) | {"key": f"{uid}:{step.name}"} for step in handler.steps(payload, uid)]


def settle(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Apply the domain's effect of a final outcome, and return what a person has to know of it, if anything."""
    return find(message["topic"]).settle(conn, message=message, outcome=outcome)


def can_give_back() -> list[str]:
    """Return the topics that take money, and can send it back."""
    return [handler.topic for handler in every() if handler.give_back]
