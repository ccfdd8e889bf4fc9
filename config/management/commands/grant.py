"""Give every login what config/logins.sql says; run after each `migrate`."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from config import logins
from ledger import partitions


class Command(BaseCommand):
    help = "Give every database login what config/logins.sql says, and make the coming months' partitions."

    def handle(self, **options: Any) -> None:
        """Run as the owner."""
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as conn:
            logins.grant(conn)
            partitions.make(conn)
        self.stdout.write("Grants applied.")
