"""What runs in one transaction, and what may become of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from agent.answers import Answer
from agent.approvals import Permission
from agent.effects import Effects
from agent.validation import ValidCall
from agent.windows import Limits
from ledger.executions import Stored


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What runs, and within which bounds."""

    calls: Sequence[ValidCall]
    day: date  # today in the installation's zone
    limits: Limits = field(default_factory=dict)
    permission: Permission | None = None

    @property
    def partial(self) -> bool:
        """Return whether failing calls leave the others applied: never when a person approved exactly this."""
        return self.permission is None and len(self.calls) > 1 and all(call.tool.independent for call in self.calls)

    @property
    def isolation(self) -> str:
        """Return the isolation level that the strictest of the tools needs."""
        return "serializable" if any(call.tool.isolation == "serializable" for call in self.calls) else "read committed"


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The batch committed."""

    results: dict[int, dict[str, Any]]
    told: list[Answer]  # the answers that are not simply a result
    queued: bool  # an outbox message was committed with it


@dataclass(frozen=True, kw_only=True)
class Known:
    """The batch was answered before: by executions, or by an abort's answers."""

    stored: list[Stored]
    told: list[dict[str, Any]] | None


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """What the batch would have done. `over` is what the database said about sums that would go over a limit."""

    results: dict[int, dict[str, Any]]
    effects: Effects
    over: str | None = None


class Drifted(Exception):
    """What would happen is not what a person approved; nothing of it did."""

    def __init__(self, effects: Effects) -> None:
        super().__init__()
        self.effects = effects
