"""The Stripe sandbox as a process of its own, and its control API."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests import sandboxes

API_KEY = "sk_test_outbox"
SECRET = "whsec_outbox"


@dataclass(frozen=True)
class Provider:
    """A running sandbox."""

    base: str

    def call(self, method: str, path: str, /, **json: Any) -> dict[str, Any]:
        """Make one call of the control API."""
        session = requests.Session()
        session.trust_env = False
        headers = {"Authorization": f"Bearer {API_KEY}"}
        answer = session.request(method, f"{self.base}/_sandbox/{path}", json=json or None, headers=headers, timeout=10)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def fault(self, when: str, mode: str, **more: Any) -> None:
        """Have calls fail; by default the next POST."""
        self.call("POST", "faults", when=when, mode=mode, **more)

    def advance(self, hours: int) -> None:
        """Let the provider's clock go forward."""
        self.call("POST", "clock", advance=hours * 3600)

    def settle(self, object_id: str, status: str) -> None:
        """Give an object its next status, as a bank would."""
        self.call("POST", "settle", id=object_id, status=status)

    def movements(self, uid: object) -> list[int]:
        """Return what moved for a message, in minor units."""
        found = self.call("GET", "money")["movements"]
        return [one["amount"] for one in found if one["metadata"].get("backstop_uid") == str(uid)]

    def objects(self, kind: str, uid: object) -> list[dict[str, Any]]:
        """Return the objects of a message."""
        found = self.call("GET", f"objects?kind={kind}")["objects"]
        return [one for one in found if one["metadata"].get("backstop_uid") == str(uid)]

    def flat(self, params: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
        """Return parameters as a form has them: metadata[backstop_uid], refunds[0][refund], true."""
        found: dict[str, str] = {}
        for name, value in params.items():
            full = f"{prefix}[{name}]" if prefix else name
            value = {str(place): one for place, one in enumerate(value)} if isinstance(value, list) else value
            if isinstance(value, Mapping):
                found |= self.flat(value, full)
            else:
                found[full] = str(value).lower() if isinstance(value, bool) else str(value)
        return found

    def create(self, path: str, *, key: str = "", **params: Any) -> dict[str, Any]:
        """Make an object through the API, as a person in the Dashboard would; `key` is an idempotency key."""
        session = requests.Session()
        session.trust_env = False
        headers = {"Authorization": f"Bearer {API_KEY}"} | ({"Idempotency-Key": key} if key else {})
        answer = session.post(f"{self.base}{path}", data=params, headers=headers, timeout=10)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def running(data: Path, *, webhook_url: str = "") -> Iterator[Provider]:
    """Start a sandbox, and end it afterwards."""
    words = ("--webhook-url", webhook_url) if webhook_url else ()
    process, address = sandboxes.start(data, "--port", "0", *words, key=API_KEY, secret=SECRET, log=data / "log")
    try:
        yield Provider(address)
    finally:
        process.terminate()
        process.wait(10)
