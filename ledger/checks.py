"""What must be true of the fault points' variable before a process starts."""

from typing import Any

from django.conf import settings
from django.core import checks

from ledger import faults


@checks.register("ledger")
def check_faults(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a BACKSTOP_FAULT that is not understood: one that never strikes would prove nothing."""
    try:
        faults.parse(settings.FAULT)
    except faults.BadFault as fault:
        return [checks.Error(str(fault), id="ledger.E001")]
    return []
