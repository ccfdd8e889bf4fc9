"""One call of an attempt as pages show it: what it asked, what the model was told, what really happened."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psycopg import errors

from ledger import diffs, marks, sentences
from ledger.models import AttemptOutcome

HAPPENED = {
    "never_ran": "None of its statements ran.",
    "invalid": "Nothing ran: it was refused before the transaction.",
    "held": "Nothing ran.",
    "waits": "Nothing ran.",
    "rejected": "A reviewer said no. Nothing ran.",
    "dropped": "A reviewer removed it. Nothing of it ran.",
    "asked": "A person was asked. Nothing was changed.",
    "left_open": "Nothing of it is committed: it runs now, or its worker ended.",
    "stopped": "Whatever it did was rolled back.",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why the failing call failed, in the database's words: reviewers and admins only."""

    sqlstate: str
    sqlstate_name: str
    constraint: str
    table: str
    statement: str
    statement_number: int | None
    detail: str

    @property
    def words(self) -> str:
        """Return the fault as one sentence."""
        if not self.sqlstate:
            return f"A rule of ours refused it: {self.detail}" if self.detail else "A rule of ours refused it."
        where = f", constraint {self.constraint}" if self.constraint else ""
        where += f" on {self.table}" if self.table else ""
        at = f", at its statement {self.statement_number}" if self.statement_number else ""
        return f"The database refused it: SQLSTATE {self.sqlstate} {self.sqlstate_name}{where}{at}."


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of an attempt."""

    index: int
    id: str
    tool: str
    arguments: Any
    fate: str  # a key of marks.CALLS
    told: str
    reason: str  # the sentence of its problem or verdict
    fault: Fault | None
    changes: list[diffs.Record]

    @property
    def number(self) -> int:
        """Return its place as people count."""
        return self.index + 1

    @property
    def mark(self) -> marks.Mark:
        """Return its state, icon and word."""
        return marks.of_call(self.fate, does=sentences.does(self.tool))

    @cached_property
    def sentence(self) -> str:
        """Return what it asked for."""
        return sentences.proposed(tool=self.tool, arguments=self.arguments)

    @property
    def raw(self) -> str:
        """Return its arguments as JSON."""
        return json.dumps(self.arguments, indent=2, ensure_ascii=False)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Return its arguments with labels, amounts in words."""
        return lines(self.arguments)

    @property
    def failure(self) -> str:
        """Return why it failed in the words that the model got, else in ours."""
        told = self.told.removeprefix("FAILED: ")
        return told or (self.fault.words if self.fault else self.reason)

    @property
    def happened(self) -> str:
        """Return what became of it, whatever the model was told."""
        if self.fate == "failed":
            return self.fault.words if self.fault else self.reason or "It failed."
        if self.fate == "applied":
            return f"Committed. {counted(len(self.changes))} changed." if self.changes else "It ran and changed no row."
        if self.fate == "undone":
            return f"It ran and changed {counted(len(self.changes)).lower()}; all of it was rolled back."
        return HAPPENED[self.fate]


def counted(rows: int) -> str:
    """Return a number of rows as words."""
    return {0: "No row", 1: "1 row"}.get(rows, f"{rows} rows")


def lines(arguments: Any) -> list[tuple[str, str]]:
    """Return arguments as label and value, for people; the currency is said by the amounts."""
    given = arguments if isinstance(arguments, dict) else {}
    return [(diffs.label(name), value(name, given)) for name in given if name not in diffs.UNSAID]


def value(name: str, arguments: Mapping[str, Any]) -> str:
    """Return an argument as people read it, an amount with the call's currency."""
    given, currency = arguments[name], arguments.get("currency")
    if name.endswith("_minor") and isinstance(given, int) and isinstance(currency, str):
        return sentences.money(given, currency)
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def fault_of(outcome: AttemptOutcome) -> Fault:
    """Return why an attempt's failing call failed."""
    return Fault(
        sqlstate=outcome.sqlstate or "",
        sqlstate_name=sqlstate_name(outcome.sqlstate),
        constraint=outcome.constraint_name or "",
        table=outcome.table_name or "",
        statement=outcome.failed_statement or "",
        statement_number=outcome.statement_number,
        detail=outcome.detail or "",
    )


def sqlstate_name(code: str | None) -> str:
    """Return the condition's name: "23514" is "check_violation"."""
    try:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", errors.lookup(code or "").__name__).lower()
    except KeyError:
        return ""
