"""Every fault: what the library makes of it, whether money moved, and what a repeat with the same key gives."""

from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox
from tests.waiting import until


class Story:
    """A refund of 4 euros that a fault meets, sent with one key."""

    def __init__(self, shop: Shop, sandbox: Sandbox, account: str) -> None:
        self.shop, self.sandbox, self.account = shop, sandbox, account
        self.intent = shop.charge()

    def send(self) -> stripe.Refund:
        return self.shop.refund(self.intent, amount=400, key="back")

    def fails(self, when: str, mode: str, error: type[stripe.StripeError], **more: Any) -> stripe.StripeError:
        self.sandbox.fault(when, mode, path="/v1/refunds", **more)
        with pytest.raises(error) as raised:
            self.send()
        return raised.value

    def moved(self) -> int:
        return sum(line["kind"] == "refund" for line in self.sandbox.movements(self.account))

    def replayed(self) -> bool:
        return self.send().last_response.headers.get("Idempotent-Replayed") == "true"


@pytest.fixture
def story(shop: Shop, sandbox: Sandbox, account: str) -> Story:
    return Story(shop, sandbox, account)


@pytest.mark.parametrize(
    ("mode", "error", "status"),
    [
        ("drop", stripe.APIConnectionError, None),
        ("400_rate_limit", stripe.RateLimitError, 400),
        ("401", stripe.AuthenticationError, 401),
        ("403", stripe.PermissionError, 403),
        ("409", stripe.APIError, 409),
        ("409_other", stripe.APIError, 409),
        ("424", stripe.APIError, 424),
        ("429", stripe.RateLimitError, 429),
        ("lock_timeout", stripe.RateLimitError, 429),
        ("500", stripe.APIError, 500),
        ("502", stripe.APIError, 502),
        ("503", stripe.APIError, 503),
        ("504", stripe.APIError, 504),
    ],
)
def test_before_nothing_is_done_and_nothing_saved(story: Story, mode: str, error: Any, status: int | None) -> None:
    assert story.fails("before", mode, error).http_status == status
    assert story.moved() == 0
    assert (story.replayed(), story.moved()) == (False, 1)


@pytest.mark.parametrize(("mode", "code"), [("429", "rate_limit"), ("lock_timeout", "lock_timeout")])
def test_during_a_429_is_not_saved(story: Story, mode: str, code: str) -> None:
    error = story.fails("during", mode, stripe.RateLimitError)
    assert (error.error.code, error.headers.get("Stripe-Should-Retry")) == (code, "true" if mode == "lock_timeout" else None)
    assert (story.moved(), story.replayed(), story.moved()) == (0, False, 1)


@pytest.mark.parametrize(("mode", "moved"), [("500", 0), ("500_effect", 1)])
def test_during_a_500_is_saved_with_or_without_effect(story: Story, mode: str, moved: int) -> None:
    assert story.fails("during", mode, stripe.APIError).http_status == 500
    with pytest.raises(stripe.APIError) as again:
        story.send()
    assert (again.value.http_status, story.moved()) == (500, moved)
    assert again.value.headers["Idempotent-Replayed"] == "true"
    assert again.value.headers["Stripe-Should-Retry"] == "false"


def test_a_429_says_how_long_to_wait(story: Story) -> None:
    assert "Retry-After" not in story.fails("before", "429", stripe.RateLimitError).headers
    assert story.fails("before", "429", stripe.RateLimitError, seconds=6.2).headers["Retry-After"] == "7"
    assert story.fails("during", "429", stripe.RateLimitError, seconds=7).headers["Retry-After"] == "7"
    assert (story.replayed(), story.moved()) == (False, 1)


def test_a_500_may_be_rolled_forward_later_and_only_a_look_up_or_an_event_tells(story: Story) -> None:
    assert story.fails("during", "500_later", stripe.APIError, seconds=0.5).http_status == 500
    assert story.moved() == 0
    until(lambda: story.moved() == 1)
    with pytest.raises(stripe.APIError) as again:
        story.send()
    assert (again.value.http_status, again.value.headers["Idempotent-Replayed"], story.moved()) == (500, "true", 1)
    (event,) = story.shop.v1.events.list({"type": "refund.created"}).data
    assert event.request.idempotency_key == "back"


def test_a_500_with_effect_keeps_a_decline(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.create("pm_card_chargeCustomerFail")
    sandbox.fault("during", "500_effect")
    with pytest.raises(stripe.APIError):
        shop.confirm(intent)
    assert shop.v1.payment_intents.retrieve(intent.id).status == "requires_payment_method"


def test_a_drop_during_executes_after_the_client_has_given_up(story: Story) -> None:
    story.fails("during", "drop", stripe.APIConnectionError, seconds=0.5)
    assert story.moved() == 0
    until(lambda: story.moved() == 1)
    assert story.replayed()


@pytest.mark.parametrize(
    ("mode", "error", "status"),
    [
        ("drop", stripe.APIConnectionError, None),
        ("trunc", stripe.APIConnectionError, None),
        ("garbage", stripe.APIError, 200),
        ("502", stripe.APIError, 502),
        ("504", stripe.APIError, 504),
        ("500", stripe.APIError, 500),
    ],
)
def test_after_the_money_has_moved_and_the_answer_is_saved(story: Story, mode: str, error: Any, status: int | None) -> None:
    assert story.fails("after", mode, error).http_status == status
    assert story.moved() == 1
    assert (story.replayed(), story.moved()) == (True, 1)


@pytest.mark.parametrize(("when", "moved_meanwhile"), [("before", 0), ("during", 0), ("after", 1)])
def test_a_slow_answer_is_late_only(story: Story, when: str, moved_meanwhile: int) -> None:
    story.sandbox.fault(when, "sleep", path="/v1/refunds", seconds=1.5)
    hasty = story.sandbox.client(story.account, patience=0.5)
    with pytest.raises(stripe.APIConnectionError):
        hasty.v1.refunds.create({"payment_intent": story.intent.id, "amount": 400}, {"idempotency_key": "back"})
    assert story.moved() == moved_meanwhile
    until(lambda: story.moved() == 1)
    assert story.replayed()


def test_a_look_up_fails_too(shop: Shop, sandbox: Sandbox) -> None:
    sandbox.fault("before", "500", method="GET", path="/v1/payment_intents", count=2)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            shop.v1.payment_intents.list()
    assert shop.v1.payment_intents.list().data == []


def test_a_seed_makes_the_same_faults_again(shop: Shop, sandbox: Sandbox) -> None:
    def pattern() -> list[bool]:
        sandbox.control("faults", method="DELETE")
        sandbox.fault("before", "429", count=None, probability=0.5, seed=7)
        return [failed() for _ in range(12)]

    def failed() -> bool:
        try:
            shop.v1.customers.create({})
        except stripe.RateLimitError:
            return True
        return False

    first = pattern()
    assert len(set(first)) == 2
    assert pattern() == first
    assert sandbox.control("faults")["faults"][0]["struck"] == sum(first)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"when": "before", "mode": "garbage"},
        {"when": "sometimes", "mode": "drop"},
        {"when": "before", "mode": "drop", "path": "("},
        {"when": "before", "mode": "drop", "colour": "red"},
        {"when": "before", "mode": "sleep", "seconds": 1e9},
        {"when": "before", "mode": "drop", "count": "many"},
    ],
)
def test_a_rule_that_cannot_be_is_refused(sandbox: Sandbox, rule: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="error"):
        sandbox.control("faults", rule)
    assert sandbox.control("faults") == {"faults": []}
