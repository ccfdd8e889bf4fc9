"""One run: harm, heal, wait for quiet, look."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from sandbox.chaos import cast, quiet, reports, verdicts
from sandbox.chaos.crowds import Crowd
from sandbox.chaos.injuries import Injuries
from sandbox.chaos.places import Place
from sandbox.chaos.plans import Plan
from sandbox.chaos.reports import Logs, Report
from sandbox.chaos.spares import Spare
from sandbox.chaos.strikes import SPARE
from sandbox.demo.provider import Provider
from sandbox.servers import CannotStart

READY = 60.0  # seconds for a process to come up on a machine that does other things too


def run(place: Place, plan: Plan, *, patience: float, say: Callable[[str], None]) -> Report:
    """Carry a plan out on an instance and return what became of it; `patience` is how long (seconds) quiet is waited for."""
    report = Report(seed=plan.seed, commit=reports.commit(), clients=len(plan.clients), seconds=plan.seconds)
    logs, since = Logs(place), _now(place)
    customers = _customers(place, plan)
    with spare_worker(place, wanted=SPARE in plan.parts) as spare:
        injuries, crowd = Injuries(place, spare, hit=plan.parts), Crowd(place, plan, customers=customers)
        crowd.start()
        try:
            say(f"Harming for {plan.seconds:g} s.")
            injuries.run(plan.strikes)
            say("Healing.")
            _heal(place, injuries, crowd, report=report, patience=patience, working=lambda: place.works() and spare.works())
        finally:
            injuries.lift()
            crowd.leave()
    report.faults, report.missed, report.kills = dict(injuries.done), dict(injuries.missed), dict(injuries.kills)
    report.struck, report.figures = dict(logs.struck()), reports.figures(place, since=since)
    say("Checking.")
    report.violations = verdicts.found(place, crowd.promises)
    return report


def _heal(
    place: Place, injuries: Injuries, crowd: Crowd, *, report: Report, patience: float, working: Callable[[], bool]
) -> None:
    """Lift every fault, let people finish, and wait until nothing is under way."""
    began = time.monotonic()
    while not injuries.lift() and time.monotonic() < began + READY:
        time.sleep(0.2)
    crowd.finish()

    def all_work() -> bool:
        crowd.check()
        return working()

    report.not_quiet = quiet.wait(place, injuries, person=crowd.staff, seconds=patience, working=all_work)
    report.quiet_after = None if report.not_quiet else round(time.monotonic() - began, 1)


def _customers(place: Place, plan: Plan) -> list[int]:
    stripe = place.content["stripe"]
    provider = Provider(api_base=stripe["api_base"], api_key=stripe["api_key"])
    try:
        with place.connect("owner") as conn:
            return cast.make(conn, cast=plan.cast, provider=provider, today=timezone.localdate())
    finally:
        provider.close()


def _now(place: Place) -> datetime:
    with place.connect("superuser") as conn:
        row = conn.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    found: datetime = row[0]
    return found


@contextmanager
def spare_worker(place: Place, *, wanted: bool) -> Iterator[Spare]:
    """Have a second agent worker, if it is wanted; it is ended afterwards."""
    spare = Spare(place, directory=settings.BASE_DIR)
    try:
        if wanted:
            _start(place, spare)
        yield spare
    finally:
        spare.stop()


def _start(place: Place, spare: Spare) -> None:
    spare.start()
    deadline = time.monotonic() + READY
    while not spare.ready():
        if time.monotonic() > deadline:
            raise CannotStart(f"The second agent worker did not start: see {place.data}/logs/spare.log.")
        time.sleep(0.1)
