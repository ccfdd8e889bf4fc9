"""Write docs/invariants.md from what the apps declare."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config import guarantees


class Command(BaseCommand):
    help = "Write docs/invariants.md: what check_invariants checks, by guarantee."
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Run without a database."""
        (settings.BASE_DIR / "docs" / "invariants.md").write_text(guarantees.document())
        self.stdout.write("Wrote docs/invariants.md.")
