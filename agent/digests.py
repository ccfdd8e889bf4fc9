"""The digest of what a batch does: the same whenever it would do the same, whatever ids and times come out. Pure.

A row that was there before is taken whole as it was, so that whatever changed in it meanwhile is noticed. What the database
makes up by itself is masked by a list that the domain declares (settings.BACKSTOP_MASKS). A table that is not in it is taken
as it is: then whatever makes a row of it is never the same twice, and runs only when nobody has to approve it.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.fingerprints import canonical

Row = Mapping[str, Any]
Identity = tuple[str, Hashable]  # a table and what names one row of it
MADE_UP = "(made up)"


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What is made up in the rows of one table, or in the payload of one topic."""

    key: str = ""  # the column that names a row; the database makes it up for a new one
    generated: tuple[str, ...] = ()  # columns that are written with another value each time, such as the time
    refers: Mapping[str, str] = field(default_factory=dict)  # columns that name a row of a table, which may be a new one
    aggregate: str = ""  # of a topic: the table of the row that its aggregate names, as in "invoice:57"


Masks = Mapping[str, Mask]  # by table or topic


def digest(*, changes: Sequence[Row], messages: Sequence[Row], masks: Masks) -> bytes:
    """Return the SHA-256 of a batch's row changes, in their order, and of the messages that would leave with it."""
    inserts = [change for change in changes if change["operation"] == "INSERT"]
    unnamed = _Reading(masks=masks, made=dict.fromkeys((_identity(change, masks) for change in inserts), MADE_UP))
    ordered = sorted(inserts, key=lambda change: unnamed.change(change, whole=False))
    names = {_identity(change, masks): f"{MADE_UP} {number}" for number, change in enumerate(ordered)}
    reading = _Reading(masks=masks, made=names)
    untouched = _untouched(changes, masks=masks, made=names)
    # Which part of one statement writes first is the planner's choice: the order within a batch says nothing.
    rows = sorted(reading.change(change, whole=at in untouched) for at, change in enumerate(changes))
    leaving = sorted(reading.message(message) for message in messages)
    return hashlib.sha256(canonical([rows, leaving]).encode()).digest()


def _identity(change: Row, masks: Masks) -> Identity:
    table, row = change["table_name"], change["after"] or change["before"]
    return table, row.get(masks.get(table, Mask()).key)


def _untouched(changes: Sequence[Row], *, masks: Masks, made: Mapping[Identity, str]) -> set[int]:
    """Return the positions of changes whose row was until then as it was before the batch."""
    touched: set[Identity] = set(made)
    found = set()
    for at, change in enumerate(changes):
        identity = _identity(change, masks)
        if identity[1] is None or identity not in touched:
            found.add(at)
        touched.add(identity)
    return found


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """Reads rows with what is made up in them replaced."""

    masks: Masks
    made: Mapping[Identity, str]  # the batch's new rows and what stands for their keys

    def change(self, change: Row, *, whole: bool) -> str:
        """Return a change as text; `whole` takes the row before it as it is."""
        table, before = change["table_name"], change["before"]
        if not whole:
            before = self._row(table, before)
        return canonical([change["call_index"], table, change["operation"], before, self._row(table, change["after"])])

    def message(self, message: Row) -> str:
        """Return a message as text."""
        topic = message["topic"]
        kind, _, number = message["aggregate"].partition(":")
        named = self.made.get((self.masks.get(topic, Mask()).aggregate, int(number)), number) if number.isdecimal() else number
        return canonical([message["call_index"], topic, kind, named, self._row(topic, message["payload"])])

    def _row(self, name: str, row: Row | None) -> Row | None:
        mask = self.masks.get(name, Mask())
        return row and {column: self._value(name, mask, column, value) for column, value in row.items()}

    def _value(self, name: str, mask: Mask, column: str, value: Any) -> Any:
        if value is None:
            return None
        if column in mask.generated:
            return MADE_UP
        table = name if column == mask.key else mask.refers.get(column)
        return self.made.get((table, value), value) if table else value
