"""The Stripe sandbox as a process of its own: how it is started, and where it listens."""

import os
import re
from pathlib import Path

from tests.forks import Program
from tests.waiting import until

LISTENING = re.compile(r"^listening on (\S+)$", re.MULTILINE)


def start(data: Path, *words: str, key: str, secret: str, log: Path) -> tuple[Program, str]:
    """Start a sandbox in a folder and return its process and its address; whatever it prints is added to `log`."""
    begin = log.stat().st_size if log.exists() else 0
    env = os.environ | {"STRIPE_SANDBOX_API_KEY": key, "STRIPE_SANDBOX_WEBHOOK_SECRET": secret}
    process = Program("sandbox.stripe", "--data", str(data), *words, env=env, log=log)

    def listening() -> str:
        assert process.poll() is None, log.read_text()
        found = LISTENING.search(log.read_text()[begin:]) if log.exists() else None
        return found[1] if found else ""

    return process, until(listening, seconds=30, what="a Stripe sandbox")
