"""Refunds: the cap, the late ends, and what gives the money back."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox


def refused(shop: Shop, intent: stripe.PaymentIntent, **more: Any) -> stripe.InvalidRequestError:
    with pytest.raises(stripe.InvalidRequestError) as error:
        shop.refund(intent, **more)
    return error.value


def refunded(shop: Shop, intent: stripe.PaymentIntent) -> int:
    return shop.v1.charges.retrieve(str(intent.latest_charge)).amount_refunded


def test_it_refunds_in_parts_up_to_the_charge(shop: Shop) -> None:
    intent = shop.charge()
    first = shop.refund(intent, amount=400, reason="requested_by_customer")
    assert (first.status, first.amount, first.charge) == ("succeeded", 400, intent.latest_charge)
    too_much = refused(shop, intent, amount=601)
    assert (too_much.http_status, too_much.param, too_much.code) == (400, "amount", None)
    assert too_much.user_message == "Refund amount (€6.01) is greater than unrefunded amount on charge (€6.00)"
    assert shop.refund(intent).amount == 600
    assert refused(shop, intent).code == "charge_already_refunded"
    charge = shop.v1.charges.retrieve(str(intent.latest_charge))
    assert (charge.amount_refunded, charge.refunded) == (1000, True)


@pytest.mark.parametrize(("currency", "amount", "wrong", "right"), [("ugx", 1_000_000, 550, 500), ("kwd", 10_240, 5124, 5120)])
def test_a_part_is_an_amount_that_its_currency_has(shop: Shop, currency: str, amount: int, wrong: int, right: int) -> None:
    intent = shop.charge(currency=currency, amount=amount)
    assert refused(shop, intent, amount=wrong).param == "amount"
    assert shop.refund(intent, amount=right).currency == currency


def test_refunds_at_once_stay_below_the_charge(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.charge()

    def refund(number: int) -> bool:
        try:
            return bool(shop.refund(intent, amount=400, key=f"part:{number}").id)
        except stripe.InvalidRequestError as refusal:
            assert refusal.param == "amount"
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(refund, range(8))) == 2
    assert refunded(shop, intent) == 800
    assert [line["amount"] for line in sandbox.movements(account)] == [1000, -400, -400]


def test_it_finds_refunds(shop: Shop) -> None:
    intent, other = shop.charge(), shop.charge()
    refund = shop.refund(intent, metadata={"uid": "9"})
    shop.refund(other)
    assert shop.v1.refunds.retrieve(refund.id).metadata["uid"] == "9"
    assert [found.id for found in shop.v1.refunds.list({"payment_intent": intent.id}).data] == [refund.id]
    assert [found.id for found in shop.v1.refunds.list({"charge": str(intent.latest_charge)}).data] == [refund.id]


def test_a_pending_refund_succeeds_by_the_clock(shop: Shop, sandbox: Sandbox) -> None:
    refund = shop.refund(shop.charge("pm_card_pendingRefund"))
    assert (refund.status, refund.pending_reason) == ("pending", "processing")
    sandbox.advance(61)
    assert shop.v1.refunds.retrieve(refund.id).status == "succeeded"


def test_a_refund_fails_after_it_succeeded(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.confirm(shop.create("pm_card_refundFail"), key="pay")
    refund = shop.refund(intent, amount=400, key="back")
    assert (refund.status, refunded(shop, intent)) == ("succeeded", 400)
    sandbox.advance(61)
    failed = shop.v1.refunds.retrieve(refund.id)
    assert (failed.status, failed.failure_reason, refunded(shop, intent)) == ("failed", "expired_or_canceled_card", 0)
    moved = [(line["kind"], line["amount"], line["idempotency_key"]) for line in sandbox.movements(account)]
    assert moved == [("charge", 1000, "pay"), ("refund", -400, "back"), ("refund_failed", 400, "back")]


def test_a_cancelled_refund_gives_the_cap_back(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.charge("pm_card_pendingRefund")
    refund = shop.refund(intent, amount=400)
    assert refused(shop, intent, amount=1000).param == "amount"
    assert sandbox.control("settle", {"id": refund.id, "status": "canceled"})["status"] == "canceled"
    assert shop.refund(intent, amount=1000).amount == 1000


def test_the_api_cancels_only_a_refund_that_waits_for_the_customer(shop: Shop, sandbox: Sandbox) -> None:
    refund = shop.refund(shop.charge("pm_card_pendingRefund"))
    with pytest.raises(stripe.InvalidRequestError, match="status of pending"):
        shop.v1.refunds.cancel(refund.id)
    sandbox.control("settle", {"id": refund.id, "status": "requires_action"})
    assert shop.v1.refunds.cancel(refund.id).status == "canceled"


def test_a_month_later_a_bank_may_still_return_a_refund(shop: Shop, sandbox: Sandbox) -> None:
    refund = shop.refund(shop.charge())
    assert sandbox.control("settle", {"id": refund.id, "status": "failed"})["status"] == "failed"


def test_a_disputed_charge_cannot_be_refunded(shop: Shop) -> None:
    intent = shop.charge("pm_card_createDispute")
    refusal = refused(shop, intent)
    assert (refusal.http_status, refusal.code, refunded(shop, intent)) == (400, "charge_disputed", 0)
    (dispute,) = shop.v1.disputes.list({"payment_intent": intent.id}).data
    assert (dispute.charge, shop.v1.disputes.retrieve(dispute.id).status) == (intent.latest_charge, "needs_response")


def test_there_must_be_money_to_refund(shop: Shop) -> None:
    assert "successful charge" in str(refused(shop, shop.create()).user_message)
    with pytest.raises(stripe.InvalidRequestError, match="payment_intent or charge"):
        shop.v1.refunds.create({})
    with pytest.raises(stripe.CardError) as declined:
        shop.charge("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.InvalidRequestError) as unpaid:
        shop.v1.refunds.create({"charge": declined.value.error.charge})
    assert unpaid.value.code == "charge_not_refundable"
