"""What is different between two previews of the same calls: when the reviewer looked, and now. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escalations.proofs import Proof
from ledger import diffs, sentences

Row = Mapping[str, Any]
Key = tuple[str, str, int]  # table, id, or the how-many-eth new row of its table
UNTOLD = diffs.UNSAID | {"updated_at", "number"}


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
    records = [_record(key, before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after])]
    left, leaves = ([item.sentence for item in proof.leaving] for proof in (looked, now))
    return Drift(
        looked=looked,
        now=now,
        records=[record for record in records if record.fields],
        gone=_without(left, leaves),
        new=_without(leaves, left),
    )


def _rows(changes: Iterable[Row]) -> dict[Key, tuple[Row, Row]]:
    """Return each touched row as it was and as it would be; a new row's id is another at every run, so it is counted."""
    found: dict[Key, tuple[Row, Row]] = {}
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


def _record(key: Key, looked: tuple[Row, Row] | None, now: tuple[Row, Row] | None) -> diffs.Record:
    table, name, _ = key
    what = "changed since you looked" if looked and now else "is touched now" if now else "is not touched any more"
    return diffs.Record(
        what=diffs.label(table.partition("_")[2] or table),
        name=name,
        verb=what,
        fields=tuple(_fields(looked or ({}, {}), now or ({}, {}))),
    )


def _fields(looked: tuple[Row, Row], now: tuple[Row, Row]) -> Iterable[diffs.Field]:
    """Yield what differs: the value that is there, else the value that would be there."""
    images = [row for pair in (now, looked) for row in pair]
    currency = next((str(row["currency"]) for row in images if row.get("currency")), "")
    for column in dict.fromkeys(column for row in images for column in row):
        if column in UNTOLD or column.endswith("_at"):
            continue
        for side, suffix in ((0, ""), (1, ", after this")):
            old, new = looked[side].get(column), now[side].get(column)
            if old != new:
                shown = [diffs.text(column, value, currency=currency, money=sentences.money) for value in (old, new)]
                yield diffs.Field(label=diffs.label(column) + suffix, before=shown[0], after=shown[1])
                break


def _without(these: Sequence[str], those: Sequence[str]) -> list[str]:
    return [sentence for sentence in these if sentence not in those]
