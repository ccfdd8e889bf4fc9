"""The limiter: in front of everything, by endpoint and in all, and what it refuses is not saved."""

import pytest
import stripe

from sandbox.stripe.exchange import Call
from sandbox.stripe.limits import Limit, Limiter
from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox
from tests.waiting import until


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def call(path: str, method: str = "GET") -> Call:
    return Call(method=method, path=path, query="", body=b"", headers={}, request_id="req_1", hang_up=lambda: None)


def test_it_counts_the_last_second_of_an_endpoint_whatever_the_id() -> None:
    clock = Clock()
    limiter = Limiter(clock=clock)
    limiter.set(Limit(per_endpoint=2))
    passed = [limiter.lets_through(call(f"/v1/customers/cus_{number}")) for number in range(3)]
    assert (passed, limiter.refused) == ([True, True, False], 1)
    assert limiter.lets_through(call("/v1/customers"))
    clock.now = 1.0
    assert limiter.lets_through(call("/v1/customers/cus_4"))


def test_it_counts_every_call_together_and_what_it_refused_not_at_all() -> None:
    clock = Clock()
    limiter = Limiter(clock=clock)
    limiter.set(Limit(per_second=2))
    paths = ("/v1/customers", "/v1/refunds", "/v1/nowhere", "/v1/events")
    assert [limiter.lets_through(call(path)) for path in paths] == [True, True, False, False]
    clock.now = 1.0
    assert limiter.lets_through(call("/v1/events"))


def test_without_a_limit_everything_passes() -> None:
    assert all(Limiter().lets_through(call("/v1/customers")) for _ in range(1000))


def test_a_refused_call_is_not_saved_and_may_come_again(shop: Shop, sandbox: Sandbox) -> None:
    tries: list[str] = []

    def refused() -> bool:
        tries.append(f"k{len(tries)}")
        try:
            shop.v1.customers.create({}, {"idempotency_key": tries[-1]})
        except stripe.RateLimitError as limited:
            assert (limited.error.code, limited.headers["Retry-After"]) == ("rate_limit", "1")
            return True
        return False

    assert sandbox.control("limit", {"per_second": 1, "per_endpoint": 1})["per_second"] == 1
    try:
        until(refused)
        assert sandbox.control("limit")["refused"] == 1
    finally:
        sandbox.control("limit", {})
    answer = shop.v1.customers.create({}, {"idempotency_key": tries[-1]})
    assert "Idempotent-Replayed" not in answer.last_response.headers
    with pytest.raises(AssertionError, match="per_second"):
        sandbox.control("limit", {"per_second": 0})
