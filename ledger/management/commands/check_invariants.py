"""Check what must be true, and say what is not."""

import json
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ledger import connections, invariants
from ledger.invariants import Comparison, Finding

AWAY = "Nothing was checked, as the database cannot be reached. Is the instance up that BACKSTOP_DATA or DATABASE_URL names?"
SHOWN = 20  # rows of one invariant


class Command(BaseCommand):
    help = "Check every invariant in one snapshot, and the books against the provider's log. Exits with 1 if any is violated."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take --json, --quiet and --times."""
        parser.add_argument("--json", action="store_true", help="print what was found as JSON")
        parser.add_argument("--quiet", action="store_true", help="nothing is running now, so nothing may be under way")
        parser.add_argument("--times", action="store_true", help="say how long each took")

    def handle(self, **options: Any) -> None:
        """Run as the keeper, which reads everything and moves nothing."""
        try:
            opened = psycopg.connect(settings.DATABASE_URL, **connections.arguments())
        except psycopg.OperationalError:
            raise CommandError(AWAY, returncode=2) from None  # 1 says that something is violated
        with opened as conn:
            found = invariants.examine(conn, quiet=options["quiet"])
            compared = invariants.compare(conn, quiet=options["quiet"])
        if options["json"]:
            self.stdout.write(json.dumps(report(found, compared, times=options["times"]), default=str, indent=2))
        else:
            self._print(found, compared, times=options["times"])
        if compared.violations or not all(finding.holds for finding in found):
            raise SystemExit(1)

    def _print(self, found: list[Finding], compared: Comparison, *, times: bool) -> None:
        broken = [finding for finding in found if not finding.holds]
        self.stdout.write(f"{len(found)} invariants checked, {len(broken) or 'none'} violated.")
        for finding in broken:
            self._print_finding(finding)
        self.stdout.write(compared.says)
        for violation in compared.violations[:SHOWN]:
            self.stdout.write(f"  {violation.name}: {line(violation.row)}")
        self._print_rest(len(compared.violations))
        for finding in sorted(found, key=lambda one: -one.ms) if times else []:
            self.stdout.write(f"{finding.ms:>8} ms  {finding.invariant.name}")

    def _print_finding(self, finding: Finding) -> None:
        self.stdout.write(f"\n{finding.invariant.name} (guarantee {finding.invariant.guarantee})\n  {finding.invariant.says}")
        if finding.error:
            self.stdout.write(f"  It could not be checked: {finding.error}")
        for row in finding.rows[:SHOWN]:
            self.stdout.write(f"  - {line(row)}")
        self._print_rest(finding.count)

    def _print_rest(self, count: int) -> None:
        if count > SHOWN:
            self.stdout.write(f"  … and {count - SHOWN} more")


def line(row: dict[str, Any]) -> str:
    """Return a row in one line."""
    return ", ".join(f"{name}={json.dumps(value, default=str, ensure_ascii=False)[:120]}" for name, value in row.items())


def report(found: list[Finding], compared: Comparison, *, times: bool) -> dict[str, Any]:
    """Return the same for a machine."""
    report = {
        "checked": len(found),
        "violations": [
            {
                "invariant": finding.invariant.name,
                "guarantee": finding.invariant.guarantee,
                "says": finding.invariant.says,
                "count": finding.count,
                "rows": finding.rows[:SHOWN],
                **({"error": finding.error} if finding.error else {}),
            }
            for finding in found
            if not finding.holds
        ],
        "provider": {
            "compared": compared.compared,
            "says": compared.says,
            "movements": compared.movements,
            "sums": compared.sums,
            "violations": [{"invariant": violation.name, "row": violation.row} for violation in compared.violations],
        },
    }
    return report | ({"ms": {finding.invariant.name: finding.ms for finding in found}} if times else {})
