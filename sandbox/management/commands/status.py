"""Tell what of an instance is running."""

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from sandbox.supervisor import faults, reports


class Command(BaseCommand):
    help = "Tell what of an instance is running; exits 0 when everything is."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say which instance and for whom."""
        parser.add_argument(
            "--data", type=Path, default=settings.DATA_DIR, help="directory of the instance (default: %(default)s)"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, **options: Any) -> None:
        """Print the state; exit 1 unless everything runs."""
        with faults.told(self.stderr):
            found = reports.status(options["data"].expanduser().absolute())
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else "\n".join(reports.table(found)))
        sys.exit(0 if found["state"] == "ready" else 1)
