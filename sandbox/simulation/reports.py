"""What a simulation did and found, for people and for programs."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from psycopg import Connection

from sandbox.chaos.verdicts import Violation
from sandbox.demo.provider import Provider
from sandbox.simulation import failures
from sandbox.simulation.verdicts import Verdicts

SHOWN = 10  # lines of one fault
CALL = re.compile(r"(GET|POST) /v1/(?!customers|payment_methods)")  # those of the cast meet no failure
COUNTS = {
    "sends": "SELECT coalesce(sum(sends), 0) FROM public.outbox_message",
    "look_ups": "SELECT count(*) FROM public.outbox_delivery WHERE step = 'lookup'",
    "found_by_look_up": "SELECT count(*) FROM public.outbox_message WHERE outcome_source = 'lookup'"
    " AND state IN ('succeeded', 'rejected')",
    "told_by_event": "SELECT count(*) FROM public.outbox_message WHERE outcome_source = 'webhook'",
    "leases_lost": "SELECT count(*) FROM public.outbox_delivery WHERE stale",
}


@dataclass(kw_only=True)
class Report:
    """A simulation's result; hours are of the provider's clock."""

    seed: int
    commit: str
    charges: int
    refunds: int
    seconds: float = 0.0
    calls: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)  # calls that failed on purpose, by kind
    failures: int = 0  # of messages: each was put off
    pauses: int = 0  # of more than a day, after a failure
    jumps: int = 0
    hours: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)  # for a person: how many, by reason
    waiting_moved: int = 0  # of those: the money of which has moved
    adopted: int = 0
    double: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    unquiet: str = ""
    violations: list[Violation] = field(default_factory=list)
    kept: str = ""  # where the files are

    @property
    def fault_share(self) -> float:
        """Return which part of the calls failed on purpose."""
        return round(sum(self.faults.values()) / self.calls, 3) if self.calls else 0.0

    @property
    def fine(self) -> bool:
        """Say whether nothing is double, lost, wrong, sent blindly or broken, and all came to its end."""
        return not (self.double or self.lost or self.wrong or self.blind or self.unquiet or self.violations)

    def take(self, verdicts: Verdicts) -> None:
        """Take over what became of the orders."""
        self.outcomes = {kind: dict(counted) for kind, counted in verdicts.outcomes.items()}
        self.waiting, self.waiting_moved = dict(verdicts.waiting.most_common()), verdicts.waiting_moved
        self.adopted = verdicts.adopted
        self.double, self.lost, self.wrong, self.blind = verdicts.double, verdicts.lost, verdicts.wrong, verdicts.blind

    def as_json(self) -> str:
        """Return it for programs."""
        return json.dumps(asdict(self) | {"fault_share": self.fault_share, "fine": self.fine}, indent=2, default=str)

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        what = f"{self.charges} charges and {self.refunds} refunds in {self.seconds:.0f} s"
        yield f"Seed {self.seed} at commit {self.commit}: {what}."
        yield f"  calls      {self.calls}, of which {100 * self.fault_share:.0f} % failed on purpose"
        for name, count in sorted(self.faults.items(), key=lambda item: -item[1]):
            yield f"             {count:>5} {name}"
        passed = f"{self.hours:.0f} h passed in {self.jumps} jumps"
        yield f"  put off    {self.failures} times, {self.pauses} of them for more than a day; {passed}"
        yield "  relays     " + ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in self.counts.items())
        for kind, counted in self.outcomes.items():
            yield f"  {kind + 's':<10} " + ", ".join(f"{count} {name}" for name, count in counted.items())
        for reason, count in self.waiting.items():
            yield f"             {count:>5} with a person: {reason}"
        yield f"             {self.waiting_moved:>5} of these have moved money, as the person will find"
        yield f"  adopted    {self.adopted} whose answer was lost are settled all the same"
        for name in ("double", "lost", "wrong", "blind"):
            found: list[str] = getattr(self, name)
            yield f"  {name:<10} {len(found)}"
            yield from (f"    - {line}" for line in found[:SHOWN])
        yield from (f"\n{one.invariant}\n  {one.says}\n  {json.dumps(one.rows[:SHOWN], default=str)}" for one in self.violations)
        if self.unquiet:
            yield f"NOT QUIET: {self.unquiet}"
        if self.kept:
            yield f"The instance is kept in {self.kept}: `manage.py up --data {self.kept}` starts it."


def counts(conn: Connection[Any]) -> dict[str, int]:
    """Return what the relays did."""
    found = {name: conn.execute(query).fetchone() for name, query in COUNTS.items()}
    return {name: int(row[0]) for name, row in found.items() if row}


def struck(provider: Provider, *, seed: int) -> Counter[str]:
    """Return how often which failure struck; the sandbox lists its rules in the order in which they were added."""
    names = [name for name, _ in failures.rules(seed=seed)]
    found: Counter[str] = Counter()
    for name, rule in zip(names, provider.control("GET", "faults")["faults"], strict=True):
        found[name] += rule["struck"]
    return found


def calls(log: Path) -> int:
    """Return how many calls of the API a sandbox has written down."""
    with open(log, errors="replace") as lines:
        return sum(bool(CALL.search(line)) for line in lines)
