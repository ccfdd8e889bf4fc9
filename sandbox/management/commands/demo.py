"""Make the demo's customers, once; what they have paid is charged at the Stripe sandbox, by the outbox."""

import os
import subprocess
import sys
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from sandbox.demo import books
from sandbox.demo.cast import CAST
from sandbox.demo.provider import NoProvider, Provider


class Command(BaseCommand):
    help = "Make the demo's customers, invoices and payments. Those that are there already are left alone."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what can be chosen."""
        parser.add_argument("--story", action="store_true", help="Tell the naive side of the story afterwards.")

    def handle(self, **options: Any) -> None:
        """Run as the owner; the charges are made by a process with the outbox login."""
        try:
            provider = Provider.of_instance(settings.DATA_DIR)
            with psycopg.connect(settings.DATABASE_URL, autocommit=True) as conn:
                self._make(conn, provider)
        except NoProvider as error:
            raise CommandError(str(error)) from error
        if options["story"]:
            call_command("story", naive=True)

    def _make(self, conn: "psycopg.Connection[Any]", provider: Provider | None) -> None:
        wanted = [who for who in CAST if not books.known(conn, email=who.email)]
        today = timezone.localdate()
        queued = [invoice for who in wanted for invoice in books.make(conn, who=who, provider=provider, today=today)]
        if queued and not delivered():
            self.stderr.write("Not every payment could be made now; the outbox worker makes the others.")
        paid = books.date_payments(conn, invoices=queued)
        if provider:
            books.bill(conn, cast=CAST, provider=provider)
            provider.close()
        self.stdout.write(f"Made {len(wanted)} demo customers; {paid} of {len(queued)} invoices are paid.")
        if not provider:
            self.stdout.write("There is no Stripe sandbox here: the customers have no cards and no payments.")


def delivered() -> bool:
    """Send what is queued, as the outbox login, in a process of its own: the owner holds no key of the provider."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | {"BACKSTOP_LOGIN": "outbox"}
    command = [sys.executable, settings.BASE_DIR / "manage.py", "demo_payments"]
    return subprocess.run(command, env=env, cwd=settings.BASE_DIR, check=False).returncode == 0
