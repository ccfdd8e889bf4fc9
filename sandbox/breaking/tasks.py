"""What the keeper's worker does for the page: nothing anywhere but in a demonstration."""

from typing import Any

from celery.signals import worker_ready

from sandbox.breaking import demonstration, lookout


@worker_ready.connect
def look_out(**kwargs: Any) -> None:
    """Look at the invariants for whoever opens the page."""
    if demonstration.is_on():
        lookout.begin()
