"""Compare ledger, books, conversations, outbox and provider, and say what disagrees."""

import json
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from escalations.reconciling import looking, scanning, scans
from escalations.reconciling.looking import Found
from ledger import connections, reconciling
from outbox import reconciling as outbox

AWAY = "Nothing was compared, as the database cannot be reached. Is the instance up that BACKSTOP_DATA or DATABASE_URL names?"


class Command(BaseCommand):
    help = (
        "Compare ledger, books, conversations, outbox and provider. Changes nothing, unless --open puts each disagreement"
        " before a person. Exits with 1 if anything disagrees, with 2 if something could not be compared."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take --json and --open."""
        parser.add_argument("--json", action="store_true", help="print what was found as JSON")
        parser.add_argument("--open", action="store_true", help="open an escalation for each, and clear those that are gone")

    def handle(self, **options: Any) -> None:
        """Run as the outbox login, the only one that may ask the provider."""
        try:
            opened = psycopg.connect(settings.DATABASE_URL, **connections.arguments())
        except psycopg.OperationalError:
            raise CommandError(AWAY, returncode=2) from None
        with opened as conn:
            found = looking.everything(conn, get=outbox.provider())
            scan = self._open(conn, found) if options["open"] else {}
            stands = _taken_out(conn, found)
        report = _report(found, scan=scan) | {"let_stand": stands}
        self.stdout.write(json.dumps(report, indent=2, default=str) if options["json"] else _words(report))
        if found.errors or found.disagreements:
            raise SystemExit(2 if found.errors else 1)

    def _open(self, conn: "psycopg.Connection[Any]", found: Found) -> dict[str, Any]:
        """Write down what was found, as a scan."""
        scan = scans.begin(conn)
        return scanning.settle(conn, scan=scan, found=found)


def _taken_out(conn: "psycopg.Connection[Any]", found: Found) -> list[str]:
    """Take out what people let stand as it is, and return its objects."""
    stands = [about for about, (_, one) in found.disagreements.items() if scanning.is_settled(conn, one=one)]
    for about in stands:
        del found.disagreements[about]
    return stands


def _report(found: Found, *, scan: dict[str, Any]) -> dict[str, Any]:
    disagreements = [
        {
            "check": name,
            "object": one.object,
            "says": one.sentence,
            "detail": one.detail,
            "subject": one.subject,
            "thread": one.thread,
            "message": one.message,
            "amount_minor": one.amount_minor,
            "currency": one.currency,
            **one.shown(),
        }
        for name, one in found.disagreements.values()
    ]
    skipped = [check.name for check in reconciling.every() if check.name not in found.looked and check.name not in found.errors]
    told = {name: scan[name] for name in ("opened", "cleared") if scan}
    return {"compared": found.counts, "disagreements": disagreements, "errors": found.errors, "skipped": skipped, **told}


def _words(report: dict[str, Any]) -> str:
    compared = ", ".join(f"{number:,} {what}" for what, number in report["compared"].items())
    lines = [
        f"Compared {compared}: {len(report['disagreements']) or 'no'} disagreement{'s' * (len(report['disagreements']) != 1)}."
    ]
    for one in report["disagreements"]:
        lines.append(f"\n{one['object']} ({one['check']})\n  {one['says']}")
        lines += [f"  {fact['name']}: {fact['ours']} | {fact['theirs']}" for fact in one["facts"] if fact["differs"]]
        lines.append(f"  Can be settled by: {', '.join(one['exits']).replace('_', ' ')}.")
    lines += [f"\nCould not compare {name}: {error}." for name, error in report["errors"].items()]
    if report["skipped"]:
        lines.append(f"\nNot compared, as the provider cannot be asked from here: {', '.join(report['skipped'])}.")
    if report["let_stand"]:
        lines.append(f"\nLet stand as it is by a reviewer: {', '.join(report['let_stand'])}.")
    if "opened" in report:
        lines.append(f"\n{report['opened']} opened, {report['cleared']} cleared.")
    return "\n".join(lines)
