"""The books against the provider's own log of what moved, where there is one that can be asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from ledger import wiring
from ledger.invariants.declaring import Violation


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a comparison found: `compared` with no violations means that books and provider agree."""

    compared: bool
    says: str
    movements: int = 0
    sums: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # currency → {"books", "provider"}, minor units
    violations: list[Violation] = field(default_factory=list)


def compare(conn: Connection[Any], *, quiet: bool = False) -> Comparison:
    """Return how the books agree with the provider; `conn` and `quiet` are those of `check`.

    What is compared with is plugged in by settings.BACKSTOP_PROVIDER_LOG. A log that does not answer is a violation.
    """
    found: Comparison = wiring.plugged("BACKSTOP_PROVIDER_LOG")(conn, quiet=quiet)
    return found
