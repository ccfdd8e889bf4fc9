"""Who is held to the contract: the sandbox always; real Stripe, in test mode, when STRIPE_TEST_KEY is set."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings

from billing import handlers as topics
from outbox import gateway, outcomes
from outbox.live import LIVE_BASE
from outbox.outcomes import Answer, Outcome
from tests.outbox import provider as providers

REAL_KEY = os.environ.get("STRIPE_TEST_KEY", "")
REAL = pytest.param("stripe", marks=pytest.mark.skipif(not REAL_KEY, reason="STRIPE_TEST_KEY is not set"))


@dataclass(frozen=True)
class Shop:
    """A customer with a card, and our own requests about them, as the outbox freezes them."""

    customer: str
    method: str

    def charge(self, *, amount_minor: int = 48_000, currency: str = "EUR") -> "Sent":
        """Return a charge that nothing was sent of yet."""
        uid = uuid4()
        payload = {
            "amount_minor": amount_minor,
            "currency": currency,
            "provider_customer_id": self.customer,
            "provider_payment_method": self.method,
            "invoice_id": 7,
        }
        return Sent(uid=uid, steps=[(step.path, dict(step.params)) for step in topics.charge_steps(payload, uid)])

    def refund(self, intent: str, amount_minor: int, *, currency: str = "EUR") -> "Sent":
        """Return a refund that nothing was sent of yet."""
        uid = uuid4()
        payload = {"amount_minor": amount_minor, "currency": currency, "provider_payment_id": intent, "refund_id": 7}
        return Sent(uid=uid, steps=[(step.path, dict(step.params)) for step in topics.refund_steps(payload, uid)])

    def invoice(self, intent: str, amount_minor: int = 48_000) -> str:
        """Return the id of an invoice at the provider that an intent has paid."""
        about = {"customer": self.customer, "currency": "eur"}
        made = done("/v1/invoices", about | {"auto_advance": False})["id"]
        done("/v1/invoiceitems", about | {"invoice": made, "amount": amount_minor})
        assert done(f"/v1/invoices/{made}/finalize", {"auto_advance": False})["status"] == "open"
        assert done(f"/v1/invoices/{made}/attach_payment", {"payment_intent": intent})["status"] == "paid"
        return str(made)

    def credit_note(self, invoice: str, refund: str, amount_minor: int = 10_000, *, reason: str = "Charged twice") -> "Sent":
        """Return a credit note that nothing was sent of yet."""
        uid = uuid4()
        payload = {"amount_minor": amount_minor, "currency": "EUR", "refund_id": 7, "reason": reason}
        payload |= {"provider_invoice_id": invoice, "provider_refund_id": refund}
        return Sent(uid=uid, steps=[(step.path, dict(step.params)) for step in topics.credit_note_steps(payload, uid)])

    def paid(self, **more: Any) -> str:
        """Return the id of an intent that took its money."""
        charge = self.charge(**more)
        outcome = charge.all()
        assert outcome.kind == "succeeded" and outcome.provider_id, outcome
        return outcome.provider_id


@dataclass(frozen=True)
class Sent:
    """One message's requests, and what each answer means."""

    uid: UUID
    steps: list[tuple[str, dict[str, Any]]]

    def send(self, step: int = 0, *, known: str = "", key: str = "", **changes: Any) -> tuple[Answer, Outcome]:
        """Send a step and return the answer and what it means; `known` is the provider's id, `key` another key."""
        path, params = self.steps[step]
        answer = post(path.format(provider_id=known), params | changes, key=key or f"{self.uid}:{step}")
        asked, last = self.steps[0][1], step == len(self.steps) - 1
        return answer, outcomes.classify(answer, asked=asked, last=last, maybe_executed=False)

    def all(self) -> Outcome:
        """Send every step, and return what the last one means."""
        outcome, known = Outcome(kind="advanced"), ""
        for step in range(len(self.steps)):
            outcome = self.send(step, known=known)[1]
            known = outcome.provider_id or known
        return outcome


def post(path: str, params: dict[str, Any], *, key: str = "") -> Answer:
    """Send one POST as the outbox does, with the version that messages freeze."""
    return gateway.post(path, params, key=key or secrets.token_hex(16), version=django_settings.STRIPE_API_VERSION)


def done(path: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return what a POST answers that has to succeed."""
    answer = post(path, params)
    assert answer.status == 200 and answer.body is not None, answer
    return dict(answer.body)


def get(path: str, **params: Any) -> dict[str, Any]:
    """Return what a GET answers."""
    answer = gateway.get(path, params, version=django_settings.STRIPE_API_VERSION)
    assert answer.status == 200 and answer.body is not None, answer
    return dict(answer.body)


@pytest.fixture(scope="session")
def sandbox_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one sandbox for the suite."""
    with providers.running(tmp_path_factory.mktemp("stripe")) as running:
        yield running.base


@pytest.fixture(params=["sandbox", REAL])
def provider(request: pytest.FixtureRequest, settings: Any) -> str:
    """Point the gateway at the sandbox, or at Stripe with the key of a test account, and return which."""
    if request.param == "stripe":
        assert REAL_KEY.startswith(("sk_test_", "rk_test_")), "STRIPE_TEST_KEY is not the key of a test account."
        settings.STRIPE_API_KEY, settings.STRIPE_API_BASE = REAL_KEY, LIVE_BASE
    else:
        settings.STRIPE_API_KEY, settings.STRIPE_API_BASE = providers.API_KEY, request.getfixturevalue("sandbox_base")
    settings.STRIPE_TIMEOUTS = (3, 20)
    return str(request.param)


def shop_with(card: str) -> Shop:
    """Return a new customer who pays with a test card."""
    customer = post("/v1/customers", {"name": "Contract"}).body
    assert customer is not None
    attached = post(f"/v1/payment_methods/{card}/attach", {"customer": customer["id"]}).body
    assert attached is not None and "id" in attached, attached
    return Shop(customer=customer["id"], method=attached["id"])


@pytest.fixture
def shop(provider: str) -> Shop:
    """Return a customer whose card works."""
    return shop_with("pm_card_visa")
