"""A sandbox process and the ways to talk to it: Stripe's library, its control API, plain HTTP."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import stripe

from tests import sandboxes

KEY = "sk_test_of_the_tests"
SECRET = "whsec_of_the_tests"
stripe.enable_telemetry = False


def command(data: Path, *words: str) -> list[str]:
    """Return the command line of a sandbox."""
    return [sys.executable, "-m", "sandbox.stripe", "--data", str(data), *words]


def secrets(*, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    """Return the environment of a sandbox."""
    return os.environ | {"STRIPE_SANDBOX_API_KEY": key, "STRIPE_SANDBOX_WEBHOOK_SECRET": secret}


class Sandbox:
    """One process, its address, and a session that takes no proxy and no ~/.netrc."""

    def __init__(self, data: Path, *, webhook_url: str = "", port: int = 0) -> None:
        words = ["--webhook-url", webhook_url] if webhook_url else []
        self.data, self.webhook_url = data, webhook_url
        log = data.parent / f"{data.name}.log"
        self._process, self.base = sandboxes.start(data, "--port", str(port), *words, key=KEY, secret=SECRET, log=log)
        self.session = requests.Session()
        self.session.trust_env = False

    def log(self) -> str:
        """Return what the process has said."""
        return (self.data.parent / f"{self.data.name}.log").read_text()

    def client(self, account: str | None = None, *, key: str = KEY, patience: float = 20) -> stripe.StripeClient:
        """Return Stripe's client, without retries of its own, for an account; `patience` is its read timeout in seconds."""
        http = stripe.RequestsClient(session=self.session, timeout=(3, patience))
        return stripe.StripeClient(
            key, stripe_account=account, base_addresses={"api": self.base}, max_network_retries=0, http_client=http
        )

    def control(self, path: str, given: dict[str, Any] | None = None, *, method: str = "") -> Any:
        """Call the control API and return its answer; GET without a body, else POST."""
        answer = self.session.request(
            method or ("GET" if given is None else "POST"),
            f"{self.base}/_sandbox/{path}",
            data=None if given is None else json.dumps(given),
            headers={"Authorization": f"Bearer {KEY}"},
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def fault(self, when: str, mode: str, **more: Any) -> Any:
        """Put a fault in force for the next POST."""
        return self.control("faults", {"when": when, "mode": mode, **more})

    def advance(self, seconds: int) -> int:
        """Move the sandbox's clock."""
        return int(self.control("clock", {"advance": seconds})["now"])

    def movements(self, account: str) -> list[dict[str, Any]]:
        """Return an account's part of the money log."""
        return [line for line in self.control("money")["movements"] if line["account"] == account]

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it as its supervisor would and return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        self._process.send_signal(number)
        code = self._process.wait(10)
        self.session.close()
        assert code is not None, self.log()
        return code

    def ended(self) -> bool:
        """Return whether the process is gone."""
        return self._process.poll() is not None

    def again(self) -> "Sandbox":
        """Start it once more on the same folder and port."""
        return Sandbox(self.data, webhook_url=self.webhook_url, port=int(self.base.rpartition(":")[2]))


@contextmanager
def running(data: Path, **more: Any) -> Iterator[Sandbox]:
    """Run a sandbox for a while."""
    sandbox = Sandbox(data, **more)
    try:
        yield sandbox
    finally:
        if not sandbox.ended():
            sandbox.stop()
