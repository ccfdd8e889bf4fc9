"""Pages of a long list by key instead of by number: page 1,000 costs what page 1 costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q
from django.http import QueryDict

Rows = Any  # a QuerySet of whichever model


@dataclass(frozen=True, kw_only=True)
class Order:
    """A total order: the last key is unique. Keys are never null."""

    keys: tuple[str, ...]
    descending: bool = True


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some rows, and the cursors of the pages around them; None where there is none."""

    rows: list[Any]
    previous: str | None
    next: str | None


def page(rows: Rows, *, order: Order, size: int, before: str = "", after: str = "") -> Page:
    """Return the page after a cursor, before a cursor, or the first one; a cursor that nobody gave out counts as none."""
    start = _values(rows.model, order, after)
    end = None if start else _values(rows.model, order, before)
    if end:
        return _backwards(rows, order=order, size=size, end=end)
    found = list(_ordered(_beyond(rows, order, start, forward=True), order, forward=True)[: size + 1])
    shown = found[:size]
    return Page(
        rows=shown,
        previous=cursor(shown[0], order) if start and shown else None,
        next=cursor(shown[-1], order) if len(found) > size else None,
    )


def asked_for(rows: Rows, *, order: Order, size: int, query: QueryDict) -> Page:
    """Return the page that a request's query asks for."""
    return page(rows, order=order, size=size, before=query.get("before", ""), after=query.get("after", ""))


def kept(query: QueryDict) -> str:
    """Return a request's query without its cursors, for the links to other pages."""
    rest = query.copy()
    for name in ("before", "after"):
        rest.pop(name, None)
    return str(rest.urlencode())


def _backwards(rows: Rows, *, order: Order, size: int, end: Sequence[Any]) -> Page:
    found = list(_ordered(_beyond(rows, order, end, forward=False), order, forward=False)[: size + 1])
    shown = found[:size][::-1]
    return Page(
        rows=shown,
        previous=cursor(shown[0], order) if len(found) > size else None,
        next=cursor(shown[-1], order) if shown else None,
    )


def cursor(row: Any, order: Order) -> str:
    """Return a row's place in the order, as text for a link."""
    values = (getattr(row, key) for key in order.keys)
    return "~".join(value.isoformat() if isinstance(value, datetime) else str(value) for value in values)


def _values(model: type[Model], order: Order, text: str) -> list[Any] | None:
    parts = text.split("~")
    if len(parts) != len(order.keys) or "\x00" in text:
        return None
    try:
        return [model._meta.get_field(key).to_python(part) for key, part in zip(order.keys, parts, strict=True)]
    except ValidationError:
        return None


def _ordered(rows: Rows, order: Order, *, forward: bool) -> Rows:
    sign = "-" if order.descending == forward else ""
    return rows.order_by(*(sign + key for key in order.keys))


def _beyond(rows: Rows, order: Order, values: Sequence[Any] | None, *, forward: bool) -> Rows:
    """Return the rows on one side of the values. The first condition alone lets the index start at the right place."""
    if values is None:
        return rows
    side = "lt" if order.descending == forward else "gt"
    tail = Q(**{f"{order.keys[-1]}__{side}": values[-1]})
    for key, value in list(zip(order.keys, values, strict=True))[-2::-1]:
        tail = Q(**{f"{key}__{side}": value}) | (Q(**{key: value}) & tail)
    return rows.filter(tail, **{f"{order.keys[0]}__{side}e": values[0]})
