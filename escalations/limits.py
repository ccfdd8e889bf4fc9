"""Who set the number that a rule measured against, and when. The rows are the agent's, so they are asked by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps

from ledger import people


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One version of a rule's number."""

    version: int
    by: str
    at: datetime
    reason: str


def of(verdicts: Iterable[Mapping[str, Any]]) -> dict[int, Setting]:
    """Return the settings that these stored verdicts name, by version; a default in code has none."""
    wanted = {row.get("version") for row in verdicts}
    versions = {int(version) for version in wanted if version and str(version).isdecimal()}
    rows = list(apps.get_model("agent", "Policy").objects.filter(id__in=versions)) if versions else []
    names = people.names(row.set_by for row in rows)
    return {
        row.id: Setting(version=row.id, by=names.get(row.set_by, "an admin"), at=row.set_at, reason=row.reason) for row in rows
    }
