"""Customers, cards, payment intents and charges."""

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox


def test_it_creates_and_finds_customers(client: stripe.StripeClient) -> None:
    ada = client.v1.customers.create({"name": "Ada", "email": "ada@example.com", "metadata": {"ours": "1"}})
    client.v1.customers.create({"email": "bob@example.com"})
    assert client.v1.customers.retrieve(ada.id).metadata["ours"] == "1"
    assert [found.id for found in client.v1.customers.list({"email": "ada@example.com"}).data] == [ada.id]


def test_it_takes_money_in_two_steps(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.create(shop.card(), metadata={"uid": "7"})
    assert (intent.status, intent.latest_charge, sandbox.movements(account)) == ("requires_confirmation", None, [])
    paid = shop.confirm(intent, key="pay")
    charge = shop.v1.charges.retrieve(str(paid.latest_charge))
    assert (paid.status, paid.amount_received, charge.status, charge.paid) == ("succeeded", 1000, "succeeded", True)
    assert charge.metadata["uid"] == "7"


def test_it_writes_down_every_movement_of_money(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.confirm(shop.create(metadata={"uid": "7"}), key="pay")
    refund = shop.refund(intent, amount=300, key="back", metadata={"why": "late"})
    taken, returned = sandbox.movements(account)
    assert (taken["kind"], taken["amount"], taken["currency"], taken["metadata"]) == ("charge", 1000, "eur", {"uid": "7"})
    assert (taken["idempotency_key"], taken["request_id"]) == ("pay", intent.last_response.request_id)
    assert (returned["kind"], returned["amount"], returned["object"]) == ("refund", -300, refund.id)
    assert (returned["idempotency_key"], returned["payment_intent"], returned["metadata"]) == ("back", intent.id, {"why": "late"})
    assert [line.amount for line in shop.v1.balance.retrieve().available] == [700]


@pytest.mark.parametrize(
    ("card", "code", "decline_code"),
    [
        ("pm_card_chargeCustomerFail", "card_declined", "generic_decline"),
        ("pm_card_visa_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card"),
        ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc"),
        ("pm_card_authenticationRequired", "authentication_required", "authentication_required"),
    ],
)
def test_it_declines(shop: Shop, sandbox: Sandbox, account: str, card: str, code: str, decline_code: str) -> None:
    intent = shop.create(shop.card(card))
    with pytest.raises(stripe.CardError) as declined:
        shop.confirm(intent)
    error = declined.value.error
    assert (declined.value.http_status, error.code, error.decline_code, error.type) == (402, code, decline_code, "card_error")
    after = shop.v1.payment_intents.retrieve(intent.id)
    assert (after.status, after.payment_method, after.last_payment_error.code) == ("requires_payment_method", None, code)
    assert error.payment_intent.id == intent.id
    assert shop.v1.charges.retrieve(error.charge).status == "failed"
    assert sandbox.movements(account) == []


def test_it_takes_another_card_after_a_decline_once(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.create("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.CardError):
        shop.confirm(intent)
    assert shop.confirm(intent, payment_method=shop.card()).status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.confirm(intent)
    assert (refused.value.http_status, refused.value.code) == (400, "payment_intent_unexpected_state")
    assert len(sandbox.movements(account)) == 1
    assert [charge.status for charge in shop.v1.charges.list({"payment_intent": intent.id}).data] == ["succeeded", "failed"]


def test_it_waits_for_a_customer_who_must_authenticate(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.create("pm_card_authenticationRequired")
    asked = shop.v1.payment_intents.confirm(intent.id)
    assert (asked.status, asked.next_action.type) == ("requires_action", "use_stripe_sdk")
    assert sandbox.control("settle", {"id": intent.id, "status": "succeeded"})["status"] == "succeeded"


@pytest.mark.parametrize(
    ("method", "kind", "end"),
    [
        ("pm_usBankAccount_success", "us_bank_account", "succeeded"),
        ("pm_usBankAccount_insufficientFunds", "us_bank_account", "requires_payment_method"),
        ("pm_usBankAccount_processing", "us_bank_account", "processing"),
        ("pm_card_sandboxProcessing", "card", "succeeded"),
        ("pm_card_sandboxProcessingFails", "card", "requires_payment_method"),
    ],
)
def test_it_ends_a_payment_later(shop: Shop, sandbox: Sandbox, account: str, method: str, kind: str, end: str) -> None:
    intent = shop.confirm(shop.create(method, payment_method_types=[kind]), key="slow")
    assert (intent.status, sandbox.movements(account)) == ("processing", [])
    sandbox.advance(61)
    assert shop.v1.payment_intents.retrieve(intent.id).status == end
    keys = [(line["kind"], line["idempotency_key"]) for line in sandbox.movements(account)]
    assert keys == ([("charge", "slow")] if end == "succeeded" else [])


def test_a_control_call_ends_a_payment_at_once(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.charge("pm_card_sandboxProcessingStays")
    assert sandbox.control("settle", {"id": intent.id, "status": "failed"})["status"] == "requires_payment_method"


def test_it_cancels_what_has_not_moved_money(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.create()
    canceled = shop.v1.payment_intents.cancel(intent.id, {"cancellation_reason": "duplicate"})
    assert (canceled.status, canceled.cancellation_reason) == ("canceled", "duplicate")
    for verb in (lambda: shop.confirm(intent), lambda: shop.v1.payment_intents.cancel(intent.id)):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            verb()
        assert refused.value.code == "payment_intent_unexpected_state"
    slow = shop.charge("pm_card_sandboxProcessing")
    assert shop.v1.payment_intents.cancel(slow.id).status == "canceled"
    sandbox.advance(61)
    assert (shop.v1.payment_intents.retrieve(slow.id).status, sandbox.movements(account)) == ("canceled", [])


def test_it_confirms_with_what_it_was_given_only(shop: Shop) -> None:
    bare = shop.v1.payment_intents.create({"amount": 1000, "currency": "eur", "payment_method_types": ["card"]})
    assert bare.status == "requires_payment_method"
    with pytest.raises(stripe.InvalidRequestError, match="missing a payment method"):
        shop.confirm(bare)
    automatic = shop.v1.payment_intents.create({"amount": 1000, "currency": "eur", "payment_method": "pm_card_visa"})
    with pytest.raises(stripe.InvalidRequestError, match="return_url"):
        shop.confirm(automatic)
    assert shop.confirm(automatic, return_url="https://example.com/").status == "succeeded"


def test_it_refuses_the_card_of_somebody_else(shop: Shop) -> None:
    card, stranger = shop.card(), shop.v1.customers.create({}).id
    with pytest.raises(stripe.InvalidRequestError, match="does not have a payment method"):
        shop.create(card, customer=stranger)
    with pytest.raises(stripe.InvalidRequestError, match="already been attached"):
        shop.v1.payment_methods.attach(card, {"customer": stranger})
    with pytest.raises(stripe.InvalidRequestError, match="not allowed for this PaymentIntent"):
        shop.create("pm_usBankAccount_success")
    assert [method.id for method in shop.v1.customers.payment_methods.list(shop.customer).data] == [card]


def test_accounts_do_not_see_each_other(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.charge()
    with pytest.raises(stripe.InvalidRequestError) as absent:
        sandbox.client("acct_other").v1.payment_intents.retrieve(intent.id)
    assert (absent.value.http_status, absent.value.code) == (404, "resource_missing")


def test_it_expands_references(shop: Shop) -> None:
    intent = shop.charge()
    expanded = shop.v1.payment_intents.retrieve(intent.id, {"expand": ["latest_charge.payment_method", "customer"]})
    assert (expanded.latest_charge.payment_method.card.last4, expanded.customer.name) == ("4242", "Ada")
    listed = shop.v1.payment_intents.list({"expand": ["data.latest_charge"]})
    assert listed.data[0].latest_charge.status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError, match="cannot be expanded"):
        shop.v1.payment_intents.retrieve(intent.id, {"expand": ["amount"]})
