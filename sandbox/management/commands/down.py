"""Stop everything that `up` started for one data directory, and nothing else."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from sandbox.supervisor import endings, faults


class Command(BaseCommand):
    help = "Stop everything that `up` started; the data stay."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say which instance."""
        parser.add_argument(
            "--data", type=Path, default=settings.DATA_DIR, help="directory of the instance (default: %(default)s)"
        )

    def handle(self, **options: Any) -> None:
        """Return when nothing of the instance runs any more."""
        with faults.told(self.stderr):
            ended = endings.down(options["data"].expanduser().absolute())
            self.stdout.write("Stopped." if ended else "Nothing was running.")
