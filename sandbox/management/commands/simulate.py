"""Move money through a provider that fails, and see whether any of it moved twice, was lost, or is reported wrongly."""

import signal
import sys
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sandbox.simulation import places, runs
from sandbox.supervisor import faults

MOST = 5_000
LARGEST = 2**31 - 1


class Command(BaseCommand):
    help = (
        "Charge and refund through a Stripe sandbox of which 45 % of the calls fail, then compare its money log with the books."
        " Exits with 1 if anything is double, lost or reported wrongly."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say how much, and which plan."""
        parser.add_argument("--charges", type=int, default=500, help="invoices that are charged (default: %(default)s)")
        parser.add_argument("--refunds", type=int, default=200, help="paid ones that are refunded (default: %(default)s)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same plan (default: %(default)s)")
        parser.add_argument("--keep", action="store_true", help="leave the instance's files, to look at what waits for a person")
        parser.add_argument("--json", action="store_true", help="print what was found for programs")

    def handle(self, **options: Any) -> None:
        """Return when nothing is wrong; exit 1 with what is."""
        charges, refunds, seed = _number(options, "charges", 1, MOST), _number(options, "refunds", 0, MOST), options["seed"]
        if settings.PRODUCTION:
            raise CommandError("With production settings nothing is broken on purpose.")
        for word in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(word, _end)
        with faults.told(self.stderr), places.own() as place:
            self.stderr.write(f"Everything runs in {place.data}.")
            report = runs.run(place, charges=charges, refunds=refunds, seed=seed, say=self.stderr.write)
            if options["keep"] or not report.fine:
                place.keep, report.kept = True, str(place.data)
        self.stdout.write(report.as_json() if options["json"] else "\n".join(report.lines()))
        if not report.fine:
            sys.exit(1)


def _number(options: dict[str, Any], name: str, least: int, most: int) -> int:
    number: int = options[name]
    if not least <= number <= most:
        raise CommandError(f"--{name} is a number from {least} to {most}.")
    return number


def _end(number: int, frame: FrameType | None) -> None:
    """End in good order: what was started is stopped on the way out."""
    sys.exit(1)
