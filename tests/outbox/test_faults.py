"""Every way in which a call can go wrong, made by the provider's sandbox and seen through its real SDK."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from outbox import leases
from tests.outbox.desk import Desk

CONFIRM = "/v1/payment_intents/[^/]+/confirm"

UNKNOWN = [
    # when, mode: was it executed all the same?
    ("before", "drop", False),
    ("during", "drop", True),
    ("after", "drop", True),
    ("during", "500", False),
    ("during", "500_effect", True),
    ("before", "502", False),
    ("after", "500", True),
    ("after", "502", True),
    ("after", "garbage", True),
    ("after", "trunc", True),
    ("before", "409", False),
]


@pytest.mark.parametrize(("when", "mode", "executed"), UNKNOWN)
@pytest.mark.parametrize("path", ["/v1/payment_intents", CONFIRM], ids=["create", "confirm"])
def test_it_looks_a_charge_up_after_an_unknown_outcome(desk: Desk, path: str, when: str, mode: str, executed: bool) -> None:
    message = desk.charge()
    desk.provider.fault(when, mode, path=path)
    desk.deliver_once()
    lost = desk.read(message)
    assert (lost["state"], lost["ever_unknown"]) == ("uncertain", True)

    desk.deliver_all(message)

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert desk.deliveries(message)[-1][0] == ("lookup" if executed and path == CONFIRM else "confirm")


@pytest.mark.parametrize(("when", "mode", "executed"), UNKNOWN)
def test_it_looks_a_refund_up_after_an_unknown_outcome(desk: Desk, when: str, mode: str, executed: bool) -> None:
    message = desk.refund(desk.paid())
    desk.provider.fault(when, mode, path="/v1/refunds")
    desk.deliver_once()
    assert desk.read(message)["state"] == "uncertain"

    desk.due(message)
    desk.deliver_once()

    assert ("lookup", "succeeded" if executed else "absent") in desk.deliveries(message)
    if (when, mode) == ("during", "500"):  # the provider keeps this answer for the key, and a refund's key is never renewed
        assert desk.read(message)["state"] == "uncertain"
        return
    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_sends_a_refund_whose_key_repeats_an_error_once_more_and_then_only_looks(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.provider.fault("during", "500", path="/v1/refunds")
    for _ in range(4):
        desk.due(message)
        desk.deliver_once()

    assert [step for step, _ in desk.deliveries(message)] == ["refund", "lookup", "refund", "lookup", "lookup"]
    waiting = desk.read(message)
    assert (waiting["state"], waiting["last_error"]) == ("uncertain", "its key repeats an error; nothing is there yet")

    params = desk.provider.flat(message["steps"][0]["params"])
    desk.provider.create("/v1/refunds", **params)  # the provider rolls its work forward
    desk.due(message)
    desk.deliver_once()
    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


@pytest.mark.parametrize(
    ("when", "mode"), [("before", "429"), ("before", "lock_timeout"), ("during", "429"), ("during", "lock_timeout")]
)
def test_it_waits_when_nothing_was_executed(desk: Desk, when: str, mode: str) -> None:
    message = desk.charge()
    desk.provider.fault(when, mode, path="/v1/payment_intents")

    desk.deliver_once()

    waiting = desk.read(message)
    assert (waiting["state"], waiting["ever_unknown"]) == ("ready", False)
    assert (waiting["first_sent_at"], waiting["key_deadline"]) == (None, None)
    desk.deliver_all(message)
    assert "lookup" not in dict(desk.deliveries(message))
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_waits_for_an_answer_no_longer_than_it_was_told(desk: Desk, settings: Any) -> None:
    settings.STRIPE_TIMEOUTS = (3, 0.2)
    message = desk.charge()
    desk.provider.fault("after", "sleep", path="/v1/payment_intents", seconds=1)

    desk.deliver_once()

    assert desk.read(message)["state"] == "uncertain"
    assert desk.one("SELECT error FROM public.outbox_delivery")["error"].startswith("APIConnectionError < ReadTimeout")


@contextmanager
def closed_port() -> Iterator[int]:
    """Hold a port that nobody listens at."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_it_knows_that_a_refused_connection_carried_nothing(desk: Desk, settings: Any) -> None:
    message = desk.charge()
    with closed_port() as port:
        settings.STRIPE_API_BASE = f"http://127.0.0.1:{port}"
        desk.deliver_once()

    assert desk.read(message)["state"] == "ready"
    settings.STRIPE_API_BASE = desk.provider.base
    desk.deliver_all(message)
    assert desk.deliveries(message) == [("create", "retry"), ("create", "advanced"), ("confirm", "succeeded")]


def test_it_knows_that_an_unknown_host_got_nothing(desk: Desk, settings: Any) -> None:
    message = desk.charge()
    settings.STRIPE_API_BASE = "http://nowhere.invalid"

    desk.deliver_once()

    assert desk.read(message)["state"] == "ready"


def test_it_does_not_call_a_refused_connection_unsent_after_an_unknown_try(desk: Desk, settings: Any) -> None:
    message = desk.refund(desk.paid())
    desk.provider.fault("before", "drop", path="/v1/refunds")
    desk.deliver_once()
    desk.due(message)
    claimed = desk.claim()
    assert claimed

    with desk.pool.connection() as conn:  # the look-up found nothing, and now the re-send is refused
        leases.begin_send(conn, message=claimed)
    with closed_port() as port:
        settings.STRIPE_API_BASE = f"http://127.0.0.1:{port}"
        desk.send(claimed)

    assert desk.read(message)["state"] == "uncertain"


@pytest.mark.parametrize("key", ["sk_wrong", ""])
def test_it_parks_when_the_key_is_refused(desk: Desk, settings: Any, key: str) -> None:
    message = desk.charge()
    settings.STRIPE_API_KEY = key

    desk.deliver_once()

    parked = desk.read(message)
    assert (parked["state"], parked["attempts"], parked["first_sent_at"]) == ("ready", 0, None)
    assert desk.deliveries(message)[-1] == ("create", "park")
    settings.STRIPE_API_KEY = "sk_test_outbox"
    desk.deliver_all(message)
    assert desk.invoice(message) == "paid"


def test_it_stops_when_its_key_was_used_for_something_else(desk: Desk) -> None:
    message = desk.charge()
    other = {"amount": 700, "currency": "eur", "metadata[backstop_uid]": "another"}
    desk.provider.create("/v1/payment_intents", key=message["steps"][0]["key"], **other)

    desk.deliver_once()

    after = desk.read(message)
    assert (after["state"], after["last_error"]) == ("dead", "400 idempotency_error")
    assert desk.deliveries(message) == [("create", "dead"), ("lookup", "absent")]
    assert desk.invoice(message) == "charge_queued"


@pytest.mark.parametrize(
    ("card", "refusal"),
    [
        ("pm_card_visa_chargeDeclinedInsufficientFunds", "insufficient_funds"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card"),
        ("pm_card_authenticationRequired", "authentication_required"),
    ],
)
def test_it_takes_a_decline_for_an_answer(desk: Desk, card: str, refusal: str) -> None:
    desk.card(card)
    message = desk.charge()

    desk.deliver_once()

    after = desk.read(message)
    assert (after["state"], after["refusal"], desk.invoice(message)) == ("rejected", refusal, "charge_failed")
    assert desk.provider.movements(message["uid"]) == []


def test_it_finds_a_decline_whose_answer_was_lost(desk: Desk) -> None:
    desk.card("pm_card_visa_chargeDeclinedInsufficientFunds")
    message = desk.charge()
    desk.provider.fault("after", "drop", path=CONFIRM)

    desk.deliver_all(message)

    after = desk.read(message)
    assert (after["state"], after["refusal"], after["outcome_source"]) == ("rejected", "insufficient_funds", "lookup")


def test_it_takes_another_payment_method_or_an_amount_that_is_too_small_for_a_no(desk: Desk) -> None:
    small = desk.charge(amount_minor=1)
    desk.deliver_once()
    assert (desk.read(small)["state"], desk.read(small)["refusal"]) == ("rejected", "amount_too_small")

    desk.owner.execute("UPDATE public.billing_customer SET provider_payment_method = 'pm_gone' WHERE id = %s", (desk.customer,))
    gone = desk.charge()
    desk.deliver_once()
    assert (desk.read(gone)["state"], desk.read(gone)["refusal"]) == ("rejected", "resource_missing")
    assert desk.invoice(gone) == "charge_failed"


def test_it_finds_a_charge_that_somebody_else_confirmed(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("before", "429", path=CONFIRM)
    desk.deliver_once()
    created = desk.read(message)
    assert (created["state"], created["step"]) == ("ready", 1)
    desk.provider.create(f"/v1/payment_intents/{created['provider_id']}/confirm")

    desk.deliver_all(message)

    assert desk.deliveries(message)[-2:] == [("confirm", "uncertain"), ("lookup", "succeeded")]
    assert (desk.read(message)["state"], desk.provider.movements(message["uid"])) == ("succeeded", [48_000])


def test_it_refuses_a_refund_of_what_somebody_else_refunded(desk: Desk) -> None:
    invoice = desk.paid(48_000)
    payment = desk.one("SELECT * FROM public.billing_payment WHERE invoice_id = %s", invoice)
    desk.provider.create("/v1/refunds", payment_intent=payment["provider_payment_id"], amount=40_000)
    too_much = desk.refund(invoice, 10_000)
    desk.deliver_once()
    assert (desk.read(too_much)["state"], desk.refund_status(too_much)) == ("rejected", "refused")
    assert desk.deliveries(too_much) == [("refund", "rejected"), ("lookup", "absent")]

    desk.provider.create("/v1/refunds", payment_intent=payment["provider_payment_id"], amount=8_000)
    nothing_left = desk.refund(invoice, 10_000)
    desk.deliver_once()

    after = desk.read(nothing_left)
    assert (after["state"], after["refusal"]) == ("rejected", "charge_already_refunded")
    assert desk.one("SELECT refunded_minor FROM public.billing_payment WHERE invoice_id = %s", invoice)["refunded_minor"] == 0
