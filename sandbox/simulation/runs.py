"""One simulation: ask for money to move, wave by wave, let everything fail, heal, and judge."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg import Connection

from sandbox.chaos import verdicts as invariants
from sandbox.chaos.reports import commit
from sandbox.simulation import failures, orders, pauses, reports, verdicts, waves
from sandbox.simulation.clock import Clock
from sandbox.simulation.orders import Order
from sandbox.simulation.places import Place
from sandbox.simulation.reports import Report

FEW = 10  # orders that are worth a wave of their own
AFTERWARDS = 120  # seconds after which the provider has ended what it had under way

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(kw_only=True)
class Simulation:
    """What one needs from its beginning to its end."""

    place: Place
    conn: Connection[Any]
    clock: Clock
    seed: int
    say: Say
    asked: list[Order] = field(default_factory=list)

    def wave(self, manner: str, made: Iterator[Order]) -> None:
        """Ask for a wave's orders and carry them to their end, while events come in some manner."""
        waves.set_manner(self.place, manner)
        fresh = list(made)
        self.asked += fresh
        self.place.ring()
        began, jumps, seconds = time.monotonic(), self.clock.jumps, self.clock.seconds
        waves.settle(self.place, self.clock)
        took, hours = time.monotonic() - began, (self.clock.seconds - seconds) / 3600
        self.say(
            f"  {len(self.asked):>5} orders: {len(fresh)} {fresh[0].kind if fresh else 'order'}s, events {manner}:"
            f" {took:.0f} s, {hours:.0f} h in {self.clock.jumps - jumps} jumps"
        )

    def finish(self) -> None:
        """Lift every failure and let everything come to its end."""
        self.place.provider.control("DELETE", "faults")
        pauses.stop(self.conn)
        waves.set_manner(self.place, "prompt")
        self.clock.jump(AFTERWARDS)
        waves.settle(self.place, self.clock, events=True)


def run(place: Place, *, charges: int, refunds: int, seed: int, say: Say) -> Report:
    """Simulate and return what was found."""
    report, began = Report(seed=seed, commit=commit(), charges=charges, refunds=refunds), time.monotonic()
    with closing(place.connect("owner")) as conn, closing(place.connect("superuser")) as everything:
        simulation = Simulation(place=place, conn=conn, clock=Clock(conn, place.provider), seed=seed, say=say)
        try:
            _carry_out(simulation, charges=charges, refunds=refunds, report=report)
        except waves.Unquiet as fault:
            report.unquiet = str(fault)
        say("Judging.")
        counted = pauses.count(conn)
        report.failures, report.pauses = counted.failures, counted.pauses
        report.jumps, report.hours = simulation.clock.jumps, round(simulation.clock.seconds / 3600, 1)
        report.counts, report.calls = reports.counts(everything), reports.calls(place.data / "logs" / "stripe.log")
        movements = place.provider.control("GET", "money")["movements"]
        report.take(verdicts.judge(everything, orders=simulation.asked, movements=movements))
    report.violations = list(invariants.broken(place.data))
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _carry_out(simulation: Simulation, *, charges: int, refunds: int, report: Report) -> None:
    conn, seed = simulation.conn, simulation.seed
    cast = orders.make_customers(conn, provider=simulation.place.provider, seed=seed, invoices_wanted=charges)
    pauses.make(conn, seed=seed)
    for _, rule in failures.rules(seed=seed):
        simulation.place.provider.control("POST", "faults", rule)
    for manner, numbers in _shared(range(charges)):
        simulation.wave(manner, orders.charges(conn, cast=cast, seed=seed, wanted=numbers))
    paid = orders.refundable(conn, seed=seed, wanted=refunds)
    for manner, some in _shared(paid):
        simulation.wave(manner, (orders.refund(conn, one, seed=seed) for one in some))
    report.refunds = len(paid)
    report.faults = dict(reports.struck(simulation.place.provider, seed=seed))
    simulation.say("Healing.")
    simulation.finish()


def _shared(wanted: Sequence[T]) -> Iterator[tuple[str, Sequence[T]]]:
    """Share orders out over waves, each with its manner of events."""
    number = max(1, min(len(waves.MANNERS), len(wanted) // FEW))
    size = max(1, -(-len(wanted) // number))
    for manner, start in zip(waves.MANNERS, range(0, len(wanted), size), strict=False):
        yield manner, wanted[start : start + size]
