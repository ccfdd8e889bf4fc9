"""What an invariant is, and which there are: every app's own, in `<app>.invariants`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any

from django.apps import apps
from django.utils.module_loading import module_has_submodule
from psycopg import Connection

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Invariant:
    """One sentence that must be true, and the query for the rows that contradict it. It must have no other rows, ever.

    In the query `%(name)s` stands for one of `values`, and a `%` is written twice. One with an `age` is about what has to
    come to an end: `%(age)s` is how long that may take, and nothing when the caller says that all is quiet. What SQL cannot
    see is found by `look`, which gets the connection and whether all is quiet.
    """

    name: str
    guarantee: int  # of docs/invariants.md
    says: str
    query: str | Callable[[], str] = ""
    values: Callable[[], Mapping[str, Any]] = dict
    age: timedelta | None = None
    look: Callable[[Connection[Any], bool], Iterable[Row]] | None = None


@dataclass(frozen=True)
class Violation:
    """One row that contradicts an invariant."""

    name: str
    row: Row


@cache
def every() -> tuple[Invariant, ...]:
    """Return the invariants of all installed apps, by name."""
    found: list[Invariant] = []
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "invariants"):
            found += import_module(f"{app.name}.invariants").INVARIANTS
    return tuple(sorted(found, key=lambda invariant: invariant.name))
