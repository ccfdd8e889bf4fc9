"""How people count attempts: the same numbers in a conversation and at the review desk. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from ledger import marks
from ledger.evidence import Evidence

SUPERSEDED = frozenset({"", "infrastructure", "lost_lease"})  # outcomes that nobody was told of


def shown(attempts: Sequence[Evidence]) -> list[Evidence]:
    """Return those attempts at one step that count, oldest first: the last, and those before it that the model was told of."""
    return [
        item
        for place, item in enumerate(attempts)
        if place == len(attempts) - 1 or not (item.result in SUPERSEDED or item.result == "held")
    ]


def numbered(attempts: Iterable[Evidence], *, restarts: Iterable[datetime] = ()) -> list[Evidence]:
    """Return the attempts oldest first, numbered from 1 and again after each restart; what only read has no number, 0."""
    oldest_first = sorted(attempts, key=lambda item: item.at)
    steps: dict[str, list[Evidence]] = {}
    for item in oldest_first:
        steps.setdefault(item.row.ai_message_id, []).append(item)
    counting = {item.id for step in steps.values() for item in shown(step) if item.mark != marks.READ}
    left, number, found = sorted(restarts), 0, []
    for item in oldest_first:
        while left and left[0] <= item.at:
            left.pop(0)
            number = 0
        number += item.id in counting
        found.append(replace(item, number=number if item.id in counting else 0))
    return found
