"""Give every login what config/logins.sql says; run after each `migrate`."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from config import logins
from ledger import partitions


class Command(BaseCommand):
    help = "Give every database login what config/logins.sql says, and make the coming months' partitions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what can be chosen."""
        parser.add_argument("--migrate", action="store_true", help="Migrate before, in the same process.")

    def handle(self, **options: Any) -> None:
        """Run as the owner."""
        if options["migrate"]:
            call_command("migrate", interactive=False, skip_checks=True)
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as conn:
            logins.grant(conn)
            partitions.make(conn)
        self.stdout.write("Grants applied.")
