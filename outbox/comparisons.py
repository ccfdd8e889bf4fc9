"""A message's request beside the provider's object, name by name. Pure: rows of ours in, words out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from outbox.models import Message

# What we never ask for and people look at all the same; the rest of what is only theirs says nothing.
THEIRS = (
    "id",
    "status",
    "amount_received",
    "latest_charge",
    "last_payment_error",
    "failure_reason",
    "cancellation_reason",
    "livemode",
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One name with what we asked for and what the provider shows; empty where a side has nothing of it."""

    name: str
    asked: str
    found: str

    @property
    def differs(self) -> bool:
        """Return whether both say something, and not the same."""
        return bool(self.asked and self.found) and self.asked != self.found


def pairs(message: Message) -> list[Pair]:
    """Return the pairs, what we asked for first; none before the provider's object was seen."""
    seen: Mapping[str, Any] | None = message.seen
    if not seen or not message.steps:
        return []
    asked, found = dict(_flat(message.steps[0]["params"])), dict(_flat(seen))
    ours = [name for name in asked if name in found or name.partition(".")[0] in seen]
    return [
        *(Pair(name=_word(name), asked=asked[name], found=found.get(name, "")) for name in ours),
        *(Pair(name=_word(name), asked="", found=found[name]) for name in THEIRS if name in found),
    ]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)


def _word(name: str) -> str:
    return {"metadata.backstop_uid": "our id"}.get(name, name.replace("metadata.", "").replace("_", " "))
