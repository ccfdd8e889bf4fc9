"""What must be true of the database at any moment: each app declares its own, `check` looks for rows that say otherwise."""

from ledger.invariants import attempts, executions
from ledger.invariants.checking import Finding, check, examine, findings, snapshot
from ledger.invariants.comparing import Comparison, compare
from ledger.invariants.declaring import Invariant, Violation, every

INVARIANTS = (*executions.INVARIANTS, *attempts.INVARIANTS)

__all__ = [
    "INVARIANTS",
    "Comparison",
    "Finding",
    "Invariant",
    "Violation",
    "check",
    "compare",
    "every",
    "examine",
    "findings",
    "snapshot",
]
