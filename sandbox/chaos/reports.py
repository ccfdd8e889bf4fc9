"""What a run did and found, for people and for programs."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from sandbox.chaos.places import Place
from sandbox.chaos.strikes import PARTS
from sandbox.chaos.verdicts import Violation

SHOWN = 10  # rows of one violation, lines of what is not quiet
FIGURES = {
    "conversations": "SELECT count(*) FROM public.agent_conversation WHERE created_at >= %(since)s",
    "messages": "SELECT count(*) FROM public.agent_staff_message WHERE sent_at >= %(since)s",
    "calls applied": "SELECT count(*) FROM public.ledger_execution WHERE committed_at >= %(since)s",
    "batches undone": "SELECT count(*) FROM public.ledger_attempt_outcome WHERE outcome = 'rolled_back'"
    " AND closed_at >= %(since)s",
    "batches held": "SELECT count(*) FROM public.ledger_attempt_outcome WHERE outcome = 'held' AND closed_at >= %(since)s",
    "batches cut off": "SELECT count(*) FROM public.ledger_attempt a WHERE opened_at >= %(since)s AND NOT EXISTS"
    " (SELECT FROM public.ledger_attempt_outcome o WHERE o.attempt_id = a.id)",
    "decisions": "SELECT count(*) FROM public.escalations_decision WHERE decided_at >= %(since)s",
    "takeovers": "SELECT count(*) FROM public.agent_thread WHERE fence > 1 AND progressed_at >= %(since)s",
    "charges": "SELECT count(*) FROM public.outbox_message WHERE topic = 'payment.charge' AND state = 'succeeded'"
    " AND created_at >= %(since)s",
    "refunds": "SELECT count(*) FROM public.outbox_message WHERE topic = 'payment.refund' AND state = 'succeeded'"
    " AND created_at >= %(since)s",
    "refused": "SELECT count(*) FROM public.outbox_message WHERE state = 'rejected' AND created_at >= %(since)s",
    "taken back": "SELECT count(*) FROM public.outbox_message WHERE state = 'cancelled' AND created_at >= %(since)s",
    "exits": "SELECT count(*) FROM public.outbox_request WHERE escalation IS NOT NULL AND requested_at >= %(since)s",
    "answers lost": "SELECT count(*) FROM public.outbox_message WHERE ever_unknown AND created_at >= %(since)s",
    "for a person": "SELECT count(*) FROM public.outbox_message WHERE state = 'dead' AND created_at >= %(since)s",
}
WORDS = {
    "kill": "kill -9",
    "immediate": "immediate stop of PostgreSQL",
    "point": "kill -9, then a fault at a point",
    "pause": "stopped and let go on",
    "end": "told to end",
    "terminate": "all backends terminated",
    "flush": "broker emptied",
    "provider": "the provider's answers broken",
    "webhooks": "webhooks doubled, delayed or reordered",
    "clock": "the provider's clock put forward",
}


@dataclass(kw_only=True)
class Report:
    """A run's result. `kills` are those that were done from outside, `struck` those at a point, by point and action."""

    seed: int
    commit: str
    clients: int
    seconds: float
    faults: Mapping[str, int] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)
    kills: Mapping[str, int] = field(default_factory=dict)
    struck: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, int] = field(default_factory=dict)
    quiet_after: float | None = None  # seconds from the last fault; None: not reached
    not_quiet: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    kept: str = ""  # where the instance's files are

    @property
    def killed(self) -> int:
        """Return how many processes died."""
        return sum(self.kills.values()) + sum(count for name, count in self.struck.items() if name.endswith(":kill"))

    @property
    def fine(self) -> bool:
        """Say whether all became quiet and nothing is wrong."""
        return self.quiet_after is not None and not self.violations

    def as_json(self) -> str:
        """Return it for programs."""
        return json.dumps(asdict(self) | {"killed": self.killed, "fine": self.fine}, indent=2, default=str)

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        yield f"Seed {self.seed} at commit {self.commit}: {self.clients} clients, {self.seconds:g} s of faults."
        yield from _listed("did", self.figures)
        yield from _listed("faults", {WORDS[kind]: count for kind, count in self.faults.items()})
        yield from _listed("missed", {WORDS[kind]: count for kind, count in self.missed.items()})
        yield from _listed(f"{self.killed} kills", self.kills)
        yield from _listed("at a point", self.struck)
        yield f"  quiet      after {self.quiet_after:.0f} s" if self.quiet_after is not None else "  NOT QUIET:"
        yield from _some(self.not_quiet)
        names = len({violation.invariant for violation in self.violations})
        yield f"  violations {names or 'none'}"
        for violation in self.violations:
            yield f"\n{violation.invariant}\n  {violation.says}"
            yield from _some(violation.rows)
        if self.kept:
            yield f"\nThe instance is kept in {self.kept}: `manage.py up --data {self.kept}` starts it again."


def _listed(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    words = ", ".join(f"{what} {count}" for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    if words:
        yield f"  {name:<10} {words}"


def _some(rows: list[Any]) -> Iterator[str]:
    for row in rows[:SHOWN]:
        yield f"  - {row if isinstance(row, str) else json.dumps(row, default=str, ensure_ascii=False)}"
    if len(rows) > SHOWN:
        yield f"  … and {len(rows) - SHOWN} more"


def figures(place: Place, *, since: datetime) -> dict[str, int]:
    """Return what the books say about the time since then."""
    with place.connect("superuser") as conn:
        found = {name: conn.execute(query, {"since": since}).fetchone() for name, query in FIGURES.items()}
    return {name: int(row[0]) for name, row in found.items() if row}


class Logs:
    """What the parts of an instance write from now on."""

    def __init__(self, place: Place) -> None:
        self._files = {place.data / "logs" / f"{part}.log" for part in PARTS}
        self._from = {file: file.stat().st_size for file in self._files if file.exists()}

    def struck(self) -> Counter[str]:
        """Return how often which point struck, and how."""
        lines = [line for file in self._files for line in self._lines(file) if line.get("event") == "ledger.fault.injected"]
        return Counter(f"{line['point']}:{line['action']}" for line in lines)

    def _lines(self, file: Path) -> Iterator[dict[str, Any]]:
        """Yield the lines that are events; a process that is killed may leave half of one."""
        if not file.exists():
            return
        with open(file, "rb") as log:
            log.seek(self._from.get(file, 0))
            for line in log:
                if line.startswith(b"{") and line.rstrip().endswith(b"}"):
                    yield json.loads(line)


def commit() -> str:
    """Return the code's commit, with a plus when files differ from it."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=10"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "unknown"
