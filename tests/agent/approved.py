"""Batches that a person has looked at and approved."""

from dataclasses import replace
from typing import Any

from agent import previews
from agent.approvals import Permission
from agent.batch import Batch
from agent.tools import Arguments, Tool
from escalations.previews import Made
from ledger import invariants
from tests.agent.batches import Connection, Desk


class Nothing(Arguments):
    """Do something."""


def make_tool(name: str, run: Any, **details: Any) -> Tool:
    """Return a tool without arguments that does what `run` does."""
    return Tool(name=name, arguments=Nothing, run=run, proposed=str, applied=lambda asked, result: name, **details)


def approved(batch: Batch, made: Made, **decided: Any) -> Batch:
    """Return the batch as it is to run after somebody signed the preview."""
    permission = Permission(decision=1, escalation=1, digest=made.digest, waived=tuple(made.verdicts), **decided)
    return replace(batch, permission=permission)


def edited(batch: Batch, index: int, **arguments: Any) -> Batch:
    """Return the batch as a reviewer changed one of its calls."""
    calls = [
        replace(call, arguments={**(call.arguments or {}), **arguments}) if call.index == index else call for call in batch.calls
    ]
    return replace(batch, calls=tuple(calls), generation=batch.generation + 1)


def everything(desk: Desk) -> dict[str, int]:
    """Return how many rows every table has."""
    tables = desk.owner.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1"
    ).fetchall()
    return {name: desk.count(name) for (name,) in tables}


def contradicted(keeper: Connection, *apps: str) -> list[str]:
    """Return the invariants that do not hold, of books and ledger if nothing else is asked for."""
    asked = [one for one in invariants.every() if one.name.partition(".")[0] in (apps or ("billing", "ledger"))]
    return [found.invariant.name for found in invariants.findings(keeper, invariants=asked) if not found.holds]


def preview(desk: Desk, batch: Batch, **details: Any) -> Made:
    """Return the batch's preview."""
    return previews.make(desk.pool, batch=batch, **details)
