"""The table of answers: each row made by the sandbox and read through the real SDK; what it raises, what we make of it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import stripe

from outbox import gateway, outcomes
from outbox.outcomes import Answer, Outcome
from tests.outbox.provider import Provider
from tests.outbox.test_faults import closed_port

Json = dict[str, Any]
INTENTS = "/v1/payment_intents"


@dataclass(frozen=True)
class Call:
    """One POST, and what it asks for."""

    path: str
    params: Json
    asked: Json
    last: bool = True
    key: str = ""  # a fixed key; else a new one for each send


@dataclass(frozen=True)
class Shop:
    """A customer with a card at the provider."""

    provider: Provider
    customer: str
    method: str

    @classmethod
    def of(cls, provider: Provider, card: str) -> "Shop":
        customer = provider.create("/v1/customers", email="accounts@example.test")["id"]
        attached = provider.create(f"/v1/payment_methods/{card}/attach", customer=customer)
        return cls(provider, customer, attached["id"])

    @property
    def intent(self) -> Json:
        return {
            "amount": 48_000,
            "currency": "eur",
            "customer": self.customer,
            "payment_method": self.method,
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        }

    def create(self, **changes: Any) -> Call:
        params = self.intent | changes
        return Call(INTENTS, params, params, last=False)

    def confirm(self) -> Call:
        made = self.provider.create(INTENTS, **self.provider.flat(self.intent))
        return Call(f"{INTENTS}/{made['id']}/confirm", {"off_session": True}, self.intent)

    def paid(self) -> Json:
        made = self.provider.create(INTENTS, **self.provider.flat(self.intent), confirm="true")
        if made["status"] == "processing":
            self.provider.settle(made["id"], "succeeded")
        return made

    def refund(self, amount: int = 10_000, **params: Any) -> Call:
        asked = {"payment_intent": self.paid()["id"], "amount": amount} | params
        return Call("/v1/refunds", asked, asked)


def through_sdk(call: Call) -> type[Exception] | None:
    """Send a call with the SDK itself, and return what it raises."""
    try:
        gateway._client().raw_request("post", call.path, **call.params, idempotency_key=call.key or str(uuid.uuid4()))
    except Exception as error:
        return type(error)
    return None


def through_gateway(call: Call, *, maybe_executed: bool = False) -> tuple[Answer, Outcome]:
    answer = gateway.post(call.path, call.params, key=call.key or str(uuid.uuid4()))
    return answer, outcomes.classify(answer, asked=call.asked, last=call.last, maybe_executed=maybe_executed)


FAULTS: dict[str, tuple[str, str, type[Exception], str, int | None]] = {
    # when, mode, what the SDK raises, what we make of it, status
    "dropped before it was read": ("before", "drop", stripe.APIConnectionError, "uncertain", None),
    "dropped, and executed all the same": ("during", "drop", stripe.APIConnectionError, "uncertain", None),
    "the answer lost": ("after", "drop", stripe.APIConnectionError, "uncertain", None),
    "the answer torn": ("after", "trunc", stripe.APIConnectionError, "uncertain", None),
    "500, saved": ("during", "500", stripe.APIError, "uncertain", 500),
    "500 with an effect": ("during", "500_effect", stripe.APIError, "uncertain", 500),
    "500 instead of the answer": ("after", "500", stripe.APIError, "uncertain", 500),
    "502": ("before", "502", stripe.APIError, "uncertain", 502),
    "503": ("before", "503", stripe.APIError, "uncertain", 503),
    "504, executed": ("after", "504", stripe.APIError, "uncertain", 504),
    "2xx that cannot be read": ("after", "garbage", stripe.APIError, "uncertain", 200),
    "409, the key is in use": ("before", "409", stripe.APIError, "uncertain", 409),
    "409, another one": ("before", "409_other", stripe.APIError, "retry", 409),
    "429, an object is locked": ("before", "lock_timeout", stripe.RateLimitError, "retry", 429),
    "429": ("before", "429", stripe.RateLimitError, "retry", 429),
    "400 that is a limit": ("before", "400_rate_limit", stripe.RateLimitError, "retry", 400),
    "424": ("before", "424", stripe.APIError, "uncertain", 424),
    "401": ("before", "401", stripe.AuthenticationError, "park", 401),
    "403": ("before", "403", stripe.PermissionError, "park", 403),
}


@pytest.mark.parametrize("row", FAULTS)
def test_it_reads_what_goes_wrong(provider: Provider, row: str) -> None:
    when, mode, raised, kind, status = FAULTS[row]
    call = Shop.of(provider, "pm_card_visa").create()
    provider.fault(when, mode, path=INTENTS, count=3)

    assert through_sdk(call) is raised
    answer, outcome = through_gateway(call)
    again = through_gateway(call, maybe_executed=True)[1]

    assert (outcome.kind, outcome.verify, answer.status) == (kind, False, status)
    assert again.kind == ("uncertain" if kind == "retry" else kind)  # once maybe executed, it stays so until a look-up


def test_it_is_told_how_long_a_limit_lasts(provider: Provider) -> None:
    call = Shop.of(provider, "pm_card_visa").create()
    provider.fault("before", "429", path=INTENTS, seconds=7)

    assert through_gateway(call)[1].retry_after == 7.0


def test_it_waits_no_longer_than_it_was_told(provider: Provider, settings: Any) -> None:
    call = Shop.of(provider, "pm_card_visa").create()
    settings.STRIPE_TIMEOUTS = (3, 0.2)
    provider.fault("after", "sleep", path=INTENTS, seconds=1, count=2)

    assert through_sdk(call) is stripe.APIConnectionError
    assert through_gateway(call)[1].kind == "uncertain"


def test_it_knows_a_connection_that_was_never_made(provider: Provider, settings: Any) -> None:
    call = Shop.of(provider, "pm_card_visa").create()
    with closed_port() as port:
        settings.STRIPE_API_BASE = f"http://127.0.0.1:{port}"
        assert through_sdk(call) is stripe.APIConnectionError
        assert through_gateway(call)[1].kind == "retry"
        assert through_gateway(call, maybe_executed=True)[1].kind == "uncertain"


Make = Callable[[Shop], Call]
ANSWERS: dict[str, tuple[str, Make, type[Exception] | None, str, bool, str | None]] = {
    # card, call, what the SDK raises, what we make of it, whether it is to be looked up first, the refusal's code
    "an intent that waits": ("pm_card_visa", Shop.create, None, "advanced", False, None),
    "an intent that took the money": ("pm_card_visa", Shop.confirm, None, "succeeded", False, None),
    "an intent that is not final": ("pm_usBankAccount_processing", Shop.confirm, None, "accepted", False, None),
    "a refund": ("pm_card_visa", Shop.refund, None, "succeeded", False, None),
    "a refund that is not final": ("pm_card_pendingRefund", Shop.refund, None, "accepted", False, None),
    "another amount than was asked": (
        *("pm_card_visa", lambda shop: Call(INTENTS, shop.intent, shop.intent | {"amount": 1}), None, "uncertain", False, None),
    ),
    "a decline": ("pm_card_visa_chargeDeclined", Shop.confirm, stripe.CardError, "rejected", False, "generic_decline"),
    "a decline for want of funds": (
        *(
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            Shop.confirm,
            stripe.CardError,
            "rejected",
            False,
            "insufficient_funds",
        ),
    ),
    "a customer who must act": (
        *("pm_card_authenticationRequired", Shop.confirm, stripe.CardError, "rejected", False, "authentication_required"),
    ),
    "more than is left": (
        *("pm_card_visa", lambda shop: shop.refund(48_001), stripe.InvalidRequestError, "rejected", True, "invalid_request"),
    ),
    "a charge that is disputed": (
        *("pm_card_createDispute", Shop.refund, stripe.InvalidRequestError, "rejected", False, "charge_disputed"),
    ),
    "a payment that is disputed": (
        *("pm_usBankAccount_dispute", Shop.refund, stripe.InvalidRequestError, "rejected", False, "refund_disputed_payment"),
    ),
    "a parameter that is unknown": (
        *(
            "pm_card_visa",
            lambda shop: shop.create(bogus="x"),
            stripe.InvalidRequestError,
            "rejected",
            False,
            "parameter_unknown",
        ),
    ),
    "an object that is not there": (
        "pm_card_visa",
        lambda shop: Call(f"{INTENTS}/pi_nowhere/confirm", {}, shop.intent),
        *(stripe.InvalidRequestError, "rejected", False, "resource_missing"),
    ),
}


@pytest.mark.parametrize("row", ANSWERS)
def test_it_reads_what_the_provider_says(provider: Provider, row: str) -> None:
    card, make, raised, kind, verify, refusal = ANSWERS[row]
    shop = Shop.of(provider, card)

    assert through_sdk(make(shop)) is raised
    outcome = through_gateway(make(shop))[1]
    doubtful = through_gateway(make(shop), maybe_executed=True)[1]

    assert (outcome.kind, outcome.verify, outcome.refusal) == (kind, verify, refusal)
    assert doubtful.verify is (verify or kind == "rejected")  # no refusal is believed after an unknown try


def test_it_looks_again_when_the_answer_is_one_of_an_earlier_call(provider: Provider) -> None:
    call = Shop.of(provider, "pm_card_visa").confirm()
    twice = Call(call.path, call.params, call.asked, key=str(uuid.uuid4()))

    assert [through_gateway(twice)[1].verify for _ in range(2)] == [False, True]


def test_it_never_takes_another_key_after_the_same_key_with_other_bytes(provider: Provider) -> None:
    shop = Shop.of(provider, "pm_card_visa")
    key = str(uuid.uuid4())
    through_gateway(Call(INTENTS, shop.intent, shop.intent, key=key))
    other = Call(INTENTS, shop.intent | {"amount": 700}, shop.intent, key=key)

    assert through_sdk(other) is stripe.IdempotencyError
    assert (through_gateway(other)[1].kind, through_gateway(other)[1].verify) == ("dead", True)


def test_it_takes_over_an_intent_that_has_succeeded_before(provider: Provider) -> None:
    shop = Shop.of(provider, "pm_card_visa")
    intent = shop.paid()
    again = Call(f"{INTENTS}/{intent['id']}/confirm", {"off_session": True}, shop.intent)

    assert through_sdk(again) is stripe.InvalidRequestError
    outcome = through_gateway(again)[1]
    assert (outcome.kind, outcome.verify, outcome.provider_id) == ("uncertain", True, intent["id"])


@pytest.mark.parametrize(
    ("paid", "code", "verify"), [(True, "charge_already_refunded", True), (False, "charge_not_refundable", False)]
)
def test_it_asks_whose_refund_it_was_before_it_believes_a_refusal(
    provider: Provider, paid: bool, code: str, verify: bool
) -> None:
    shop = Shop.of(provider, "pm_card_visa" if paid else "pm_card_visa_chargeDeclined")
    if paid:
        call = shop.refund(48_000)
        through_gateway(call)
    else:
        through_gateway(shop.confirm())
        charge = provider.call("GET", "objects?kind=charge")["objects"][-1]["id"]
        call = Call("/v1/refunds", {"charge": charge, "amount": 1}, {"amount": 1})

    assert through_sdk(call) is stripe.InvalidRequestError
    outcome = through_gateway(call)[1]
    assert (outcome.kind, outcome.refusal, outcome.verify) == ("rejected", code, verify)


def test_it_knows_nothing_after_any_other_exception(provider: Provider) -> None:
    call = Shop.of(provider, "pm_card_visa").create(metadata={"note": "\ud800"})

    assert through_gateway(call)[1].kind == "uncertain"


@pytest.mark.parametrize("key", ["", None])
def test_it_sends_no_post_without_a_stored_key(provider: Provider, key: Any) -> None:
    with pytest.raises(gateway.KeyMissing):
        gateway.post(INTENTS, {}, key=key)
