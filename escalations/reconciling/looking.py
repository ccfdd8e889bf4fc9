"""Asking all checks: what disagrees now, what was compared, and what could not be looked at. Changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog
from psycopg import Connection

from ledger import reconciling
from ledger.reconciling import Check, Disagreement, Get, Looking
from outbox.sweeps import Unanswered

log = structlog.get_logger()
MOST = 1000  # disagreements that are kept of one check: so many are one fault, not so many questions


@dataclass(kw_only=True)
class Found:
    """What a look found: the disagreements by object, each with its check's name."""

    disagreements: dict[str, tuple[str, Disagreement]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)  # names of the checks that went through
    errors: dict[str, str] = field(default_factory=dict)  # of those that did not

    @property
    def error(self) -> str:
        """Return in words what could not be compared."""
        return " ".join(f"{name}: {error}." for name, error in self.errors.items())


def everything(conn: Connection[Any], *, get: Get | None, checks: Iterable[Check] | None = None) -> Found:
    """Return what these checks find, or all. `conn` is in autocommit mode; without `get` the provider is not asked.

    One that fails keeps no other from looking. An object is in one disagreement: the first, in the order of the checks.
    """
    found, looking = Found(), Looking(conn=conn, get=get)
    for check in reconciling.every() if checks is None else checks:
        if check.provider and get is None:
            continue
        try:
            _look(looking, check, found)
        except (psycopg.Error, Unanswered) as error:
            if conn.closed:
                raise
            log.warning("escalations.check.failed", check=check.name, error=type(error).__name__)
            found.errors[check.name] = str(error).strip().partition("\n")[0][:200] or type(error).__name__
    return found


def _look(looking: Looking, check: Check, found: Found) -> None:
    for number, disagreement in enumerate(check.look(looking)):
        if number < MOST:
            found.disagreements.setdefault(disagreement.object, (check.name, disagreement))
    for what, query in check.counts.items():
        found.counts[what] = int(next(iter(looking.rows(query)[0].values())))
    found.looked.append(check.name)
