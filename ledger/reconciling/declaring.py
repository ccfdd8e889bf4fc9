"""What disagreements there are to look for: every app declares its checks in `<app>.reconciling`, as it does its invariants.

An invariant says that something must never be; a check finds what people can settle, says what each side believes, and by
which ways it can be settled. A check changes nothing, and says nothing of what is merely under way.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

from django.apps import apps
from django.utils.module_loading import module_has_submodule
from psycopg import Connection, sql
from psycopg.rows import dict_row

from ledger.marks import Mark

Row = dict[str, Any]
Get = Callable[[str, Mapping[str, Any]], Any]  # (path, params) → the provider's answer to one GET
QUIET = timedelta(minutes=15)  # what is younger may be under way: a lease lasts half a minute, a sweep comes every few seconds
CHUNK = 20_000  # rows that one statement looks at: far below the login's time-out, and no lock lasts longer


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing as both sides see it."""

    name: str
    ours: str
    theirs: str
    differs: bool = False


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """One object about which two sides disagree, and the ways to settle it (kinds of decisions)."""

    object: str  # such as message:17: whoever is asked about it is asked once
    about: str  # a short name for lists
    sentence: str
    detail: str = ""
    facts: tuple[Fact, ...] = ()
    exits: tuple[str, ...] = ()
    message: int | None = None  # the outbox message that an exit is about
    subject: int | None = None
    thread: UUID | None = None
    ai_message_id: str | None = None
    requested_by: int | None = None  # the staff member whom it was done for: somebody else decides
    amount_minor: int | None = None
    currency: str = ""

    @property
    def fingerprint(self) -> str:
        """Return what tells this disagreement from another one about the same object."""
        said = [[fact.name, fact.ours, fact.theirs] for fact in self.facts]
        return hashlib.sha256(json.dumps([self.object, self.sentence, said]).encode()).hexdigest()[:16]

    def shown(self) -> dict[str, Any]:
        """Return what people are shown, as JSON."""
        return {"facts": [asdict(fact) for fact in self.facts], "exits": list(self.exits)}


@dataclass(frozen=True, kw_only=True)
class Looking:
    """What a check looks with. `conn` is in autocommit mode; without `get` the provider cannot be asked."""

    conn: Connection[Any]
    get: Get | None = None
    quiet: timedelta = QUIET

    def rows(self, query: Any, **values: Any) -> list[Row]:
        """Return the rows of one statement; `%(quiet)s` is how long what is under way may take."""
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, {"quiet": self.quiet, **values}).fetchall()

    def chunks(self, query: Any, *, table: str, key: str = "id") -> Iterator[Row]:
        """Yield the rows of a query that asks for `%(after)s < key <= %(upto)s`, a chunk of the table in each statement."""
        last = sql.SQL(
            "SELECT max({key}) AS upto FROM (SELECT {key} FROM public.{table}"
            " WHERE %(after)s::{kind} IS NULL OR {key} > %(after)s ORDER BY {key} LIMIT %(size)s) AS chunk"
        ).format(key=sql.Identifier(key), table=sql.Identifier(table), kind=sql.SQL(_kind(key)))
        after: Any = None
        while (upto := self.rows(last, after=after, size=CHUNK)[0]["upto"]) is not None:
            yield from self.rows(query, after=after, upto=upto)
            after = upto


def _kind(key: str) -> str:
    return "timestamptz" if key.endswith("_at") else "bigint"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One kind of disagreement. `holds` is what is true when there is none; `theirs` heads the other side's column."""

    name: str
    holds: str
    mark: Mark
    ours: str
    theirs: str
    look: Callable[[Looking], Iterator[Disagreement]]
    counts: Mapping[str, str] = field(default_factory=dict)  # what is compared, in words → the query for its number
    provider: bool = False  # it asks the provider


@cache
def every() -> tuple[Check, ...]:
    """Return the checks of all installed apps, by name."""
    found: list[Check] = []
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "reconciling"):
            found += getattr(import_module(f"{app.name}.reconciling"), "CHECKS", ())
    return tuple(sorted(found, key=lambda check: check.name))


def find(name: str) -> Check | None:
    """Return a check by its name; None for one that is not installed any more."""
    return next((check for check in every() if check.name == name), None)
