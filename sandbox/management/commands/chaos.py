"""Break an instance at random, let it heal, and see whether anything was lost or doubled."""

import json
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from sandbox.chaos import places, plans, runs, strikes
from sandbox.chaos.places import Place
from sandbox.supervisor import faults

MOST_CLIENTS = 64
LONGEST = 24 * 3600
LARGEST = 2**63 - 1


class Command(BaseCommand):
    help = (
        "Break an instance at random while people work, let it heal, and check every invariant. Exits with 1 if any is violated."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what, how much, and where."""
        parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same plan (default: %(default)s)")
        parser.add_argument("--clients", type=int, default=8, help="people who work at once (default: %(default)s)")
        parser.add_argument("--seconds", type=float, default=60, help="how long faults are done (default: %(default)s)")
        parser.add_argument(
            "--quiet-seconds", type=float, default=600, help="how long quiet is waited for (default: %(default)s)"
        )
        parser.add_argument("--parts", default=",".join(strikes.PARTS), help="what is hit (default: %(default)s)")
        parser.add_argument("--data", type=Path, help="harm the instance that runs in this folder, not one of our own")
        parser.add_argument("--plan", action="store_true", help="print the plan and do nothing")
        parser.add_argument("--json", action="store_true", help="print the plan, or what was found, for programs")

    def handle(self, **options: Any) -> None:
        """Return when nothing is wrong; exit 1 with what is."""
        plan = plans.make(
            seed=options["seed"],
            clients=_number(options, "clients", most=MOST_CLIENTS),
            seconds=_number(options, "seconds", most=LONGEST),
            today=timezone.localdate(),
            parts=_parts(options["parts"]),
        )
        if options["plan"]:
            return self.stdout.write(json.dumps(plan.as_dict(), indent=2))
        if settings.PRODUCTION:
            raise CommandError("With production settings nothing is broken on purpose.")
        with faults.told(self.stderr):
            self._run(plan, options)

    def _run(self, plan: plans.Plan, options: dict[str, Any]) -> None:
        signal.signal(signal.SIGTERM, _end)
        wanted = _number(options, "quiet_seconds", most=LONGEST)
        with _place(options["data"]) as place:
            self.stderr.write(f"The instance in {place.data} is at {place.address}.")
            report = runs.run(place, plan, patience=wanted, say=self.stderr.write)
            if not report.fine:
                place.keep, report.kept = True, str(place.data)
        self.stdout.write(report.as_json() if options["json"] else "\n".join(report.lines()))
        if not report.fine:
            sys.exit(1)


def _place(data: Path | None) -> AbstractContextManager[Place]:
    return places.own() if data is None else nullcontext(places.given(data.expanduser().absolute()))


def _number(options: dict[str, Any], name: str, *, most: float) -> Any:
    if not 1 <= options[name] <= most:
        raise CommandError(f"--{name.replace('_', '-')} is a number from 1 to {most}.")
    return options[name]


def _parts(text: str) -> tuple[str, ...]:
    wanted = {word.strip() for word in text.split(",")}
    if unknown := sorted(wanted - strikes.PARTS.keys()):
        raise CommandError(f"--parts names {', '.join(unknown) or 'nothing'}; there are {', '.join(strikes.PARTS)}.")
    return tuple(part for part in strikes.PARTS if part in wanted)


def _end(number: int, frame: FrameType | None) -> None:
    """End in good order: what was started is stopped on the way out."""
    sys.exit(1)
