"""Make the five database logins and give the database to the owner; run once, before `migrate`."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from config import env, logins


class Command(BaseCommand):
    help = (
        "Make the five logins, or set their passwords from BACKSTOP_OWNER_PASSWORD, BACKSTOP_WEB_PASSWORD and so on. "
        "DATABASE_URL is a role that may create roles, in the database to be used."
    )
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Say what was made."""
        passwords = {login: env.text(f"BACKSTOP_{login.upper()}_PASSWORD") for login in logins.NAMES}
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as conn:
            logins.make_roles(conn, passwords=passwords)
            logins.adopt_database(conn)
        self.stdout.write("Logins made.")
