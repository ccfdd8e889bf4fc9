"""The provider's library behind its door."""

from pathlib import Path
from typing import Any

import pytest
import stripe

from outbox import gateway, live
from outbox.checks import check_events, faults
from tests.outbox.provider import Provider

CREATE = {"amount": 700, "currency": "eur"}


def test_it_sends_no_post_without_a_stored_key(provider: Provider) -> None:
    with pytest.raises(gateway.KeyMissing):
        gateway.post("/v1/payment_intents", CREATE, key="")


def test_it_sends_the_key_it_was_given(provider: Provider) -> None:
    first = gateway.post("/v1/payment_intents", CREATE, key="gateway-key-1")
    again = gateway.post("/v1/payment_intents", CREATE, key="gateway-key-1")

    assert first.body and again.body and first.body["id"] == again.body["id"]
    assert (first.replayed, again.replayed) == (False, True)
    assert first.request_id and again.request_id and first.request_id != again.request_id


@pytest.mark.parametrize("key", ["sk_live_1", "rk_live_1"])
def test_it_sends_a_live_key_to_nobody_but_the_provider(settings: Any, provider: Provider, key: str) -> None:
    settings.STRIPE_API_KEY = key

    with pytest.raises(live.LiveKeyElsewhere):
        gateway.get("/v1/balance", {})
    live.check_key(key, live.LIVE_BASE)
    live.check_key(key, live.LIVE_BASE + "/")


@pytest.mark.parametrize(
    "base", ["http://api.stripe.com", "https://api.stripe.com.evil.test", "https://api.stripe.com@evil.test"]
)
def test_it_is_not_fooled_by_an_address_that_looks_like_the_providers(base: str) -> None:
    with pytest.raises(live.LiveKeyElsewhere):
        live.check_key("sk_live_1", base)


def test_it_ignores_proxies_and_netrc(provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("default login thief password thief\n")
    for name, value in {
        "HOME": str(tmp_path),
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
        "NO_PROXY": "",
        "no_proxy": "",
    }.items():
        monkeypatch.setenv(name, value)

    assert gateway.get("/v1/balance", {}).status == 200


def test_it_sends_no_telemetry_and_never_retries(provider: Provider) -> None:
    provider.fault("before", "500", path="/v1/payment_intents")

    assert gateway.post("/v1/payment_intents", CREATE, key="gateway-key-2").status == 500

    assert stripe.enable_telemetry is False
    assert [rule["struck"] for rule in provider.call("GET", "faults")["faults"]] == [1]
    assert gateway.post("/v1/payment_intents", CREATE, key="gateway-key-2").status == 200


def test_it_reads_how_long_to_wait(provider: Provider) -> None:
    answer = gateway._answer(429, b"{}", {"Retry-After": "7", "Request-Id": "req_1"})

    assert (answer.retry_after, answer.request_id) == (7.0, "req_1")
    assert gateway._answer(429, b"{}", {"Retry-After": "Wed, 21 Oct 2026"}).retry_after is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b'{"a": NaN}', b"[" * 100_000, None])
def test_it_takes_only_an_object_for_an_answer(body: Any) -> None:
    assert gateway._answer(200, body, {}).body is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"key": ""}, ["outbox.E001"]),
        ({"key": "sk_live_1"}, ["outbox.E002"]),
        ({"timeouts": (3, 60)}, ["outbox.E003"]),
        ({"mode": "test"}, []),
        ({"mode": "live"}, ["outbox.E004"]),
        ({"key": "rk_live_1", "base": "https://api.stripe.com", "mode": "live"}, []),
        ({"key": "rk_live_1", "base": "https://api.stripe.com", "mode": "test"}, ["outbox.E004"]),
    ],
)
def test_it_is_checked_before_a_worker_starts(given: Any, expected: list[str]) -> None:
    settings = {"key": "sk_test_1", "base": "http://127.0.0.1:1", "timeouts": (3, 20)} | given

    assert [fault.id for fault in faults(**settings)] == expected


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, True),
        ({"STRIPE_MODE": "live"}, False),
        ({"STRIPE_WEBHOOK_SECRETS": []}, False),  # no event has a signature that is right
        ({"LOGIN": "agent"}, False),
        ({"PRODUCTION": False}, False),  # events are refused all the same
    ],
)
def test_whoever_takes_events_in_production_must_know_their_mode(settings: Any, changes: dict[str, Any], missing: bool) -> None:
    given = {"PRODUCTION": True, "LOGIN": "web", "STRIPE_WEBHOOK_SECRETS": ["whsec_1"], "STRIPE_MODE": ""}
    for name, value in (given | changes).items():
        setattr(settings, name, value)

    assert [fault.id for fault in check_events(None)] == ["outbox.E005"] * missing
