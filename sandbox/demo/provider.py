"""The Stripe sandbox, as the demo needs it: a customer with cards, made once however often it is asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import requests

TIMEOUT = (3, 20)  # seconds: to connect, to answer


class NoProvider(Exception):
    """The Stripe sandbox did not do what the demo needs."""


class Provider:
    """One sandbox. Its key is that of the instance, never a real one."""

    def __init__(self, *, api_base: str, api_key: str) -> None:
        if not api_key.startswith("sk_test_") or "stripe.com" in api_base:
            raise NoProvider(f"Demo customers are made at the Stripe sandbox only, not at {api_base}.")
        self.base = api_base.rstrip("/")
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {api_key}"

    @classmethod
    def of_instance(cls, data: Path) -> Self | None:
        """Return the sandbox of the instance in a data directory, or None when it has none."""
        file = data / "instance.json"
        found = json.loads(file.read_text()).get("stripe") if file.exists() else None
        return cls(api_base=found["api_base"], api_key=found["api_key"]) if found else None

    def customer(self, *, name: str, email: str) -> str:
        """Return the id of the customer, made at the first call."""
        return str(self._post("/v1/customers", {"name": name, "email": email}, key=f"demo:{email}")["id"])

    def card(self, test_card: str, *, customer: str) -> tuple[str, str]:
        """Return id and last four digits of a test card that is attached to the customer."""
        path = f"/v1/payment_methods/{test_card}/attach"
        method = self._post(path, {"customer": customer}, key=f"demo:{customer}:{test_card}")
        return str(method["id"]), str(method[method["type"]]["last4"])

    def invoice(self, about: dict[str, str], *, intent: str, amount: int) -> str:
        """Return the id of an invoice that a payment has paid, made at the first call; `amount` in the provider's minor units.

        `about` are its customer, its currency and its description.
        """
        key = f"demo:{intent}"
        made = str(self._post("/v1/invoices", about, key=f"{key}:invoice")["id"])
        self._post("/v1/invoiceitems", about | {"invoice": made, "amount": str(amount)}, key=f"{key}:item")
        self._post(f"/v1/invoices/{made}/finalize", {}, key=f"{key}:finalize")
        self._post(f"/v1/invoices/{made}/attach_payment", {"payment_intent": intent}, key=f"{key}:attach")
        return made

    def control(self, method: str, path: str, wish: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the control API answers (docs/stripe-sandbox.md); raise NoProvider."""
        try:
            answer = self.session.request(method, f"{self.base}/_sandbox/{path}", json=wish, timeout=TIMEOUT)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise NoProvider(f"The Stripe sandbox did not do {method} {path} ({type(error).__name__}).") from error
        return found

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def _post(self, path: str, form: dict[str, str], *, key: str) -> dict[str, Any]:
        try:
            answer = self.session.post(self.base + path, data=form, headers={"Idempotency-Key": key}, timeout=TIMEOUT)
        except requests.RequestException as error:
            raise NoProvider(f"The Stripe sandbox at {self.base} does not answer ({type(error).__name__}).") from error
        if answer.status_code != 200:
            raise NoProvider(f"The Stripe sandbox refused {path} with {answer.status_code}.")
        found: dict[str, Any] = answer.json()
        return found
