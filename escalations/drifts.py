"""What is different between two previews of the same calls: when the reviewer looked, and now. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escalations.proofs import Proof
from ledger import diffs, sentences
from outbox import handlers

Row = Mapping[str, Any]
Images = tuple[Row, Row]  # before and after
Key = tuple[str, str, int]  # table, id, or the how-many-eth new row of its table
UNTOLD = diffs.UNSAID | {"number", "entries"}  # counted by the database


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The rows and messages that are not what they were."""

    looked: Proof
    now: Proof
    records: list[diffs.Record]
    gone: list[str]  # messages that would have left and no longer would
    new: list[str]

    @property
    def counted(self) -> str:
        """Return how much is different."""
        fields = sum(len(record.fields) for record in self.records)
        if not fields:
            return "what would happen; no row that it touches" if self.gone or self.new else "nothing that can be shown"
        rows = "1 row" if len(self.records) == 1 else f"{len(self.records)} rows"
        return f"{fields} field{'' if fields == 1 else 's'} on {rows}; the rest is as it was"


def between(looked: Proof, now: Proof) -> Drift:
    """Return what changed from one preview to the other."""
    before, after = _rows(looked.changes), _rows(now.changes)
    keys = list(dict.fromkeys([*before, *after]))
    moved = [_record(key, before.get(key), after.get(key), side=0) for key in keys]  # the rows themselves
    would = [_record(key, before.get(key), after.get(key), side=1) for key in keys]  # only what would become of them
    found = [record for record in moved if record.fields] or [record for record in would if record.fields]
    left, leaves = looked.row.messages or [], now.row.messages or []
    return Drift(looked=looked, now=now, records=found, gone=_without(left, leaves), new=_without(leaves, left))


def _rows(changes: Iterable[Row]) -> dict[Key, Images]:
    """Return each touched row as it was and as it would be; a new row's id is another at every run, so it is counted."""
    found: dict[Key, Images] = {}
    made: dict[tuple[str, str], Key] = {}
    for change in changes:
        before, after = change["before"] or {}, change["after"] or {}
        name = str((after or before).get("id") or (after or before).get("customer_id") or "")
        table = change["table_name"]
        if change["operation"] == "INSERT":
            made[table, name] = (table, "", sum(key[0] == table for key in made.values()))
        key = made.get((table, name), (table, name, 0))
        first = found[key][0] if key in found else before
        found[key] = (first, after)
    return found


def _record(key: Key, looked: Images | None, now: Images | None, *, side: int) -> diffs.Record:
    table, name, _ = key
    what = "changed since you looked" if looked and now else "is touched now" if now else "is not touched any more"
    return diffs.Record(
        what=diffs.label(table.partition("_")[2] or table),
        name=name,
        verb=what if side == 0 or not (looked and now) else "would become another",
        fields=tuple(_fields(looked or ({}, {}), now or ({}, {}), side=side)),
    )


def _fields(looked: Images, now: Images, *, side: int) -> Iterable[diffs.Field]:
    """Yield what differs on one side: the values that are there, or those that would be there."""
    images = [*now, *looked]
    currency = next((str(row["currency"]) for row in images if row.get("currency")), "")
    fresh = not looked[0] and not now[0]  # a new row: its references may be to other new rows, which get other ids each time
    for column in dict.fromkeys(column for row in images for column in row):
        old, new = looked[side].get(column), now[side].get(column)
        if old == new or column in UNTOLD or column.endswith("_at") or (fresh and column.endswith("_id")):
            continue
        shown = [diffs.text(column, value, currency=currency, money=sentences.money) for value in (old, new)]
        yield diffs.Field(label=diffs.label(column), before=shown[0], after=shown[1])


def _without(these: Sequence[Row], those: Sequence[Row]) -> list[str]:
    """Return what the first would send and the second would not, whatever ids its new rows get."""
    seen = [_sent(row) for row in those]
    return [handlers.sentence(topic=row["topic"], payload=row["payload"]) for row in these if _sent(row) not in seen]


def _sent(row: Row) -> tuple[str, Row]:
    return row["topic"], {name: value for name, value in (row.get("payload") or {}).items() if not name.endswith("_id")}
