"""The numbers that admins set, with who set them and why: the kill switch and the per-call limits. Rows are never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from agent.models import Policy
from agent.tools import registry
from ledger import people

MOST = 50  # lines of the history
INSERT = "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by) VALUES (%s, %s, '', %s, %s, %s)"


@dataclass(frozen=True, kw_only=True)
class Pause:
    """All writes are off."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Above which amount a tool's calls wait for a reviewer: minor units of any currency; None means never."""

    tool: str
    about: str
    value: int | None
    default: int | None
    row: Policy | None  # what set it; None: the tool's own default
    by: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the history."""

    row: Policy
    by: str

    @property
    def words(self) -> str:
        """Return what was set."""
        if self.row.rule == "kill_switch":
            return "All writes paused" if self.row.value else "Writes go on"
        what = self.row.tool or "Every tool"
        return f"{what}: no limit" if self.row.value is None else f"{what}: limit {self.row.value:,} minor units"


def pause() -> Pause | None:
    """Return the pause that is on now, or None."""
    row = Policy.objects.filter(rule="kill_switch", tool="", currency="").order_by("-id").first()
    if row is None or not row.value:
        return None
    return Pause(by=people.names([row.set_by]).get(row.set_by, "An admin"), at=row.set_at, reason=row.reason)


def limits() -> list[Limit]:
    """Return the limit of every tool that moves an amount."""
    rows = Policy.objects.filter(rule="per_call", currency="").order_by("tool", "-id").distinct("tool")
    newest = {row.tool: row for row in rows}
    names = people.names(row.set_by for row in newest.values())
    found = []
    for tool in limited():
        row = newest.get(tool.name)
        by = names.get(row.set_by, "") if row else ""
        value = row.value if row else tool.hold_above
        found.append(Limit(tool=tool.name, about=tool.description, value=value, default=tool.hold_above, row=row, by=by))
    return found


def limited() -> Sequence[Any]:
    """Return the tools whose calls may be held for their amount."""
    return [tool for tool in registry().values() if tool.hold_above is not None]


def history() -> list[Line]:
    """Return the newest changes, newest first."""
    rows = list(Policy.objects.order_by("-id")[:MOST])
    names = people.names(row.set_by for row in rows)
    return [Line(row=row, by=names.get(row.set_by, "")) for row in rows]


def switch(conn: Connection[Any], *, paused: bool, reason: str, user: int) -> None:
    """Pause all writes, or let them go on."""
    conn.execute(INSERT, ("kill_switch", "", int(paused), reason, user))


def set_limit(conn: Connection[Any], *, tool: str, value: int | None, reason: str, user: int) -> None:
    """Set the amount (minor units) above which a tool's call waits for a reviewer; None: it never waits for its amount."""
    conn.execute(INSERT, ("per_call", tool, value, reason, user))
