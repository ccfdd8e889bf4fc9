"""What an outbox worker does once, before the first message waits for it."""

from django.conf import settings

from ledger import connections, wiring
from outbox import handlers, rates


def prepare() -> None:
    """Import what plugs into a delivery, and note the rates of the destinations. Raises what a wrong setting causes."""
    handlers.every()
    for plugs in ("BACKSTOP_ON_SETTLED", "BACKSTOP_ON_CONTRADICTED", "BACKSTOP_ON_ESCALATION"):
        wiring.plugged_all(plugs)
    with connections.pool().connection(timeout=2) as conn:
        rates.keep(conn, rates=settings.BACKSTOP_RATES)
