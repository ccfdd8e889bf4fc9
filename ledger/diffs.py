"""Row changes as people read them: one record a row, its fields before and after. Pure; no table or column names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

Row = Mapping[str, Any]
Money = Callable[[int, str], str]
UNSAID = frozenset({"id", "customer_id", "customer", "created_at", "currency"})  # in every row, and no news
KEYS = ("id", "customer_id")
VERBS = {"INSERT": "created", "UPDATE": "changed", "DELETE": "deleted"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field; None on either side means that it was not there."""

    label: str
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one row, first change to last."""

    what: str  # such as "Credit account"
    name: str  # its number
    verb: str
    fields: tuple[Field, ...]


def records(changes: Iterable[Row], *, money: Money) -> list[Record]:
    """Return the net change of each row, in the order of first touch.

    A change is {"table_name", "operation", "before", "after"}; `money` writes minor units of a currency.
    """
    rows: dict[tuple[str, str], list[Row]] = {}
    for change in changes:
        rows.setdefault((change["table_name"], _name(change)), []).append(change)
    return [_record(table, name, found, money) for (table, name), found in rows.items()]


def label(column: str) -> str:
    """Return a column's name as words."""
    words = column.removesuffix("_minor").removesuffix("_id").replace("_", " ")
    return words[:1].upper() + words[1:]


def _name(change: Row) -> str:
    row = change["after"] or change["before"] or {}
    return next((str(row[key]) for key in KEYS if row.get(key) is not None), "")


def _record(table: str, name: str, changes: list[Row], money: Money) -> Record:
    first, last = changes[0], changes[-1]
    operation = first["operation"] if last["operation"] != "DELETE" else "DELETE"
    before, after = first["before"] or {}, last["after"] or {}
    return Record(
        what=label(table.partition("_")[2] or table),
        name=name,
        verb=VERBS.get(operation, operation.lower()),
        fields=tuple(_fields(before, after, money)),
    )


def _fields(before: Row, after: Row, money: Money) -> Iterable[Field]:
    currency = str(after.get("currency") or before.get("currency") or "")
    for column in dict.fromkeys([*after, *before]):
        old, new = before.get(column), after.get(column)
        if column in UNSAID or old == new:
            continue
        shown = [text(column, value, currency=currency, money=money) for value in (old, new)]
        if shown != [None, None]:
            yield Field(label=label(column), before=shown[0], after=shown[1])


def text(column: str, value: Any, *, currency: str, money: Money) -> str | None:
    """Return a column's value as people read it; None for nothing."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("_minor") and currency and isinstance(value, int):
        return str(money(value, currency))
    if column.endswith("_at"):
        return _instant(str(value))
    words: str = str(value).replace("_", " ") if column in ("status", "kind") else str(value)
    return words


def _instant(text: str) -> str:
    try:
        return timezone.localtime(datetime.fromisoformat(text)).strftime("%d %b %Y %H:%M:%S")
    except ValueError:
        return text
