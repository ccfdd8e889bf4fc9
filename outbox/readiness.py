"""What an outbox worker imports once, before the first message waits for it."""

from ledger import wiring
from outbox import handlers


def prepare() -> None:
    """Import what plugs into a delivery. Raises what a wrong setting causes."""
    handlers.every()
    for plugs in ("BACKSTOP_ON_SETTLED", "BACKSTOP_ON_CONTRADICTED", "BACKSTOP_ON_ESCALATION"):
        wiring.plugged_all(plugs)
