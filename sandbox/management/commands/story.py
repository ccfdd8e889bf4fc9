"""Tell the story: with `--naive` as a stock agent lives it, without as the running instance does."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from sandbox.story import naive, real, records, script
from sandbox.story.real import CannotTell
from sandbox.story.script import Telling


class Command(BaseCommand):
    help = "Ask for a credit memo, a deduction and a refund, with a mistake in the third call, and count what comes of it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what can be chosen."""
        parser.add_argument(
            "--naive", action="store_true", help="LangGraph's stock ToolNode in a scratch schema that is dropped."
        )
        parser.add_argument("--json", action="store_true", help="Print the whole story as JSON.")
        parser.add_argument("--seconds", type=float, default=60, help="How long to wait for the running instance.")

    def handle(self, **options: Any) -> None:
        """Run as the owner with --naive, else as web."""
        telling = self._naive() if options["naive"] else self._real(options["seconds"])
        self.stdout.write(records.as_json(telling) if options["json"] else "\n".join(script.lines(telling)))

    def _naive(self) -> Telling:
        telling = naive.tell(settings.DATABASE_URL, today=timezone.localdate())
        records.save(telling, directory=settings.DATA_DIR)
        return telling

    def _real(self, seconds: float) -> Telling:
        try:
            return real.finish(real.begin(), seconds=seconds)
        except CannotTell as error:
            raise CommandError(str(error)) from error
