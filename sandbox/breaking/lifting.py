"""Lifting what an act keeps up at the Stripe sandbox: by the act itself, else, when its process was killed, by the keeper.

A file says that something is up and which process is to lift it; it is there before the first rule is.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from django.conf import settings

from sandbox.breaking import demonstration
from sandbox.breaking.demonstration import CannotStrike
from sandbox.demo.provider import NoProvider, Provider
from sandbox.servers import identities
from sandbox.servers.identities import Identity


@contextmanager
def lifted() -> Iterator[Provider]:
    """Give the Stripe sandbox, which answers and sends webhooks again afterwards. Raise CannotStrike, NoProvider."""
    _mark().write_text(json.dumps(asdict(identities.of(os.getpid()) or Identity(pid=0, created=0))))
    with demonstration.provider() as provider:
        try:
            yield provider
        finally:
            _lift(provider)


def lift_left() -> None:
    """Lift what a process that is gone has left; a sandbox that does not answer is asked another time."""
    try:
        left = Identity(**json.loads(_mark().read_text()))
        if identities.living(left) is None:
            with demonstration.provider() as provider:
                _lift(provider)
    except (FileNotFoundError, CannotStrike, NoProvider, ValueError):  # a file that is being written says so the next time
        pass


def _lift(provider: Provider) -> None:
    provider.control("DELETE", "faults")
    provider.control("POST", "webhooks", {"action": "resume"})
    _mark().unlink(missing_ok=True)


def _mark() -> Path:
    return settings.DATA_DIR / "run" / "act-at-stripe"
