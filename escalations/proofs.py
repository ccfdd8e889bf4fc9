"""A preview as the reviewer sees it: what a run that was rolled back changed, what it would have sent, where it failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from escalations.models import Preview, Revision
from ledger import diffs, sentences
from ledger.calls import Fault, sqlstate_name
from outbox import handlers


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """A message that would leave."""

    sentence: str
    destination: str
    about: str  # what it belongs to, such as "payment 4"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One preview that was made."""

    row: Preview

    @property
    def outcome(self) -> str:
        """Return "clean", "fails", "invalid", "refused" or "unavailable"."""
        return str(self.row.outcome)

    @property
    def clean(self) -> bool:
        """Return whether the whole batch ran."""
        return self.outcome == Preview.Outcome.CLEAN

    @property
    def at(self) -> datetime:
        """Return when it ran."""
        assert self.row.made_at is not None
        return self.row.made_at

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """Return the rows as they were and would be, in the order of the run."""
        return self.row.changes or []

    @cached_property
    def rows(self) -> int:
        """Return how many rows would be different."""
        return len(self.records_of(None))

    @cached_property
    def leaving(self) -> list[Leaving]:
        """Return everything that would leave."""
        return self.leaving_of(None)

    def records_of(self, index: int | None) -> list[diffs.Record]:
        """Return the rows that one call would change, or all calls together."""
        return diffs.records((row for row in self.changes if index in (None, row["call_index"])), money=sentences.money)

    def leaving_of(self, index: int | None) -> list[Leaving]:
        """Return what one call would send, or all of them."""
        return [_leaving(row) for row in self.row.messages or [] if index in (None, row["call_index"])]

    @property
    def failed_call(self) -> int | None:
        """Return the index of the call that stands in the way, if one does."""
        found = (self.row.failure or {}).get("call_index")
        return found if isinstance(found, int) else None

    @property
    def problem(self) -> str:
        """Return why the batch would not run; empty when it would."""
        return str((self.row.failure or {}).get("sentence") or "")

    @property
    def fault(self) -> Fault | None:
        """Return the failure in the database's words; None when no statement failed."""
        found = self.row.failure
        if self.outcome != Preview.Outcome.FAILS or not found:
            return None
        return Fault(
            sqlstate=found.get("sqlstate") or "",
            sqlstate_name=sqlstate_name(found.get("sqlstate")),
            constraint=found.get("constraint") or "",
            table=found.get("table") or "",
            statement=found.get("statement") or "",
            statement_number=None,
            detail=found.get("detail") or "",
        )

    def same_as(self, other: "Proof") -> bool:
        """Return whether both saw the same rows become the same, and the same leave."""
        ours, theirs = self.row.digest, other.row.digest
        return ours is not None and theirs is not None and bytes(ours) == bytes(theirs)

    @property
    def consequence(self) -> str:
        """Return what would happen, in words that follow on "Approve:"."""
        changed = {0: "No row changes", 1: "1 row changes"}.get(self.rows, f"{self.rows} rows change")
        if not self.leaving:
            return f"{changed}, nothing leaves."
        where = _joined([leaving.destination for leaving in self.leaving])
        said = "; ".join(leaving.sentence[:1].lower() + leaving.sentence[1:] for leaving in self.leaving)
        count = "1 message leaves" if len(self.leaving) == 1 else f"{len(self.leaving)} messages leave"
        return f"{changed}, {count} for {where}: {said}."


def of(revision: Revision | None) -> list[Preview]:
    """Return the previews of a revision, the newest first."""
    return list(revision.previews.order_by("-id")) if revision else []


def _leaving(row: Mapping[str, Any]) -> Leaving:
    topic, payload = row.get("topic", ""), row.get("payload") or {}
    return Leaving(
        sentence=str(row.get("sentence") or handlers.sentence(topic=topic, payload=payload)),
        destination=_destination(topic),
        about=str(row.get("aggregate") or "").replace(":", " "),
    )


def _destination(topic: str) -> str:
    try:
        return handlers.find(topic).destination.capitalize()
    except handlers.UnknownTopic:
        return topic


def _joined(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))
