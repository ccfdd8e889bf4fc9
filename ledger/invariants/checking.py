"""Looking for what contradicts the invariants: all of them in one snapshot, which changes nothing and blocks nobody."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from time import monotonic
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from ledger.invariants.declaring import Invariant, Row, Violation, every

MOST = 100  # rows that are kept of one invariant; all are counted
TIMEOUT = "10min"  # for one query: far above what a million executions take
# Sorting and hashing of whole tables, once, by one session. Compiling pays off for none of these.
SETTINGS = {"statement_timeout": TIMEOUT, "lock_timeout": "10s", "work_mem": "64MB", "jit": "off"}
COUNTED = "SELECT count(*) OVER () AS of_all, found.* FROM ({query}) AS found LIMIT {most}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found about one invariant: nothing, rows, or that it could not be checked."""

    invariant: Invariant
    rows: list[Row] = field(default_factory=list)
    count: int = 0
    error: str = ""
    ms: int = 0

    @property
    def holds(self) -> bool:
        """Say whether it was checked and nothing contradicts it."""
        return not self.count and not self.error


def check(conn: Connection[Any], *, quiet: bool = False) -> list[Violation]:
    """Return what contradicts the invariants, at most `MOST` rows of each; one that cannot be checked is a violation too.

    `conn` is in autocommit mode, as the keeper. `quiet` says that nothing is running, so nothing may be under way.
    """
    broken = [finding for finding in examine(conn, quiet=quiet) if not finding.holds]
    return [
        Violation(finding.invariant.name, row)
        for finding in broken
        for row in ([{"error": finding.error}] if finding.error else finding.rows)
    ]


def examine(conn: Connection[Any], *, quiet: bool = False) -> list[Finding]:
    """Return what was found about every invariant, in one snapshot of its own."""
    with snapshot(conn):
        return findings(conn, quiet=quiet)


@contextmanager
def snapshot(conn: Connection[Any]) -> Iterator[None]:
    """Open a transaction in which every query sees the same moment and none can write; an open one stays as it is."""
    begins = conn.info.transaction_status is TransactionStatus.IDLE
    with conn.transaction():
        if begins:
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for name, value in SETTINGS.items():
            conn.execute("SELECT set_config(%s, %s, true)", (name, value))
        yield


def findings(conn: Connection[Any], *, quiet: bool = False, invariants: Sequence[Invariant] | None = None) -> list[Finding]:
    """Return the same inside the transaction that the caller has begun."""
    return [_find(conn, invariant, quiet=quiet) for invariant in (every() if invariants is None else invariants)]


def _find(conn: Connection[Any], invariant: Invariant, *, quiet: bool) -> Finding:
    """Check one, under a savepoint: one that fails keeps no other from being checked."""
    began = monotonic()
    try:
        with conn.transaction():
            rows, count = (_looked if invariant.look else _queried)(conn, invariant, quiet=quiet)
    except psycopg.Error as error:
        if conn.closed:
            raise
        said = str(error).strip().splitlines()[0]
        return Finding(invariant=invariant, error=f"{type(error).__name__}: {said}", ms=_ms(began))
    return Finding(invariant=invariant, rows=rows, count=count, ms=_ms(began))


def _queried(conn: Connection[Any], invariant: Invariant, *, quiet: bool) -> tuple[list[Row], int]:
    age = timedelta(0) if quiet else invariant.age
    values = {**invariant.values(), "age": age, "quiet": quiet}
    query = invariant.query if isinstance(invariant.query, str) else invariant.query()
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(COUNTED.format(query=query.strip(), most=MOST), values).fetchall()
    return [{name: value for name, value in row.items() if name != "of_all"} for row in rows], rows[0]["of_all"] if rows else 0


def _looked(conn: Connection[Any], invariant: Invariant, *, quiet: bool) -> tuple[list[Row], int]:
    assert invariant.look is not None
    found = iter(invariant.look(conn, quiet))
    rows = list(islice(found, MOST))
    return rows, len(rows) + sum(1 for _ in found)


def _ms(began: float) -> int:
    return round((monotonic() - began) * 1000)
