"""Write docs/grants.md from the catalogue."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from config import grants


class Command(BaseCommand):
    help = "Write docs/grants.md: what the catalogue says each database login may do."
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Run as any login: the catalogue is public."""
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as conn:
            (settings.BASE_DIR / "docs" / "grants.md").write_text(grants.document(conn))
        self.stdout.write("Wrote docs/grants.md.")
