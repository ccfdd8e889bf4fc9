"""Deliver what the demo has queued, at once instead of when the workers run."""

from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ledger import connections
from outbox import relay

SECONDS = 60


class Command(BaseCommand):
    help = "Deliver every message of the outbox that is due, then end. Runs as the outbox login."
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Deliver through the relay, as a worker would."""
        end = monotonic() + SECONDS
        try:
            if relay.drain(connections.pool(), go_on=lambda: monotonic() < end, wake=lambda: None):
                raise CommandError(f"Not everything was delivered within {SECONDS} seconds.")
        finally:
            connections.pool().close()
