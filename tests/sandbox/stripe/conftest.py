"""One sandbox for all tests here; each test has an account of its own."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.process import Sandbox, running


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Run one process for the session."""
    with running(tmp_path_factory.mktemp("stripe") / "data") as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """Return the running sandbox, without faults before and after."""
    shared.control("faults", method="DELETE")
    yield shared
    shared.control("faults", method="DELETE")


@pytest.fixture
def account() -> str:
    """Return an account that nobody has used."""
    return f"acct_{secrets.token_hex(8)}"


@pytest.fixture
def client(sandbox: Sandbox, account: str) -> stripe.StripeClient:
    """Return Stripe's client for the test's account."""
    return sandbox.client(account)


class Shop:
    """What most tests begin with: a customer with a card, and charges on it."""

    def __init__(self, client: stripe.StripeClient) -> None:
        self.v1 = client.v1
        self.customer = self.v1.customers.create({"name": "Ada"}).id

    def card(self, name: str = "pm_card_visa") -> str:
        """Attach a copy of a test card and return its id."""
        return self.v1.payment_methods.attach(name, {"customer": self.customer}).id

    def create(self, card: str = "pm_card_visa", *, key: str | None = None, **more: Any) -> stripe.PaymentIntent:
        """Create an intent over 10 euros, not confirmed."""
        asked = {
            "amount": 1000,
            "currency": "eur",
            "customer": self.customer,
            "payment_method_types": ["card"],
            "payment_method": card,
        }
        return self.v1.payment_intents.create(asked | more, {"idempotency_key": key} if key else {})

    def confirm(self, intent: stripe.PaymentIntent, *, key: str | None = None, **more: Any) -> stripe.PaymentIntent:
        """Confirm an intent without the customer."""
        return self.v1.payment_intents.confirm(intent.id, {"off_session": True} | more, {"idempotency_key": key} if key else {})

    def charge(self, card: str = "pm_card_visa", **more: Any) -> stripe.PaymentIntent:
        """Create and confirm in two calls."""
        return self.confirm(self.create(card, **more))

    def refund(self, intent: stripe.PaymentIntent, *, key: str | None = None, **more: Any) -> stripe.Refund:
        """Refund an intent."""
        return self.v1.refunds.create({"payment_intent": intent.id} | more, {"idempotency_key": key} if key else {})


@pytest.fixture
def shop(client: stripe.StripeClient) -> Shop:
    """Return a shop with one customer."""
    return Shop(client)
