"""Idempotency keys: what is saved, what is not, for how long, and for whom."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import KEY, Sandbox
from tests.waiting import until

DAY = 24 * 60 * 60


def headers(answer: stripe.StripeObject) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.last_response.headers.items()}


def test_a_repeat_is_answered_from_the_first(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.charge()
    first = shop.refund(intent, amount=400, key="back")
    again = shop.refund(intent, amount=400, key="back")
    assert again.id == first.id
    assert [line["amount"] for line in sandbox.movements(account)] == [1000, -400]
    assert "idempotent-replayed" not in headers(first)
    assert headers(again)["idempotent-replayed"] == "true"
    assert headers(again)["original-request"] == first.last_response.request_id != again.last_response.request_id
    assert headers(first)["idempotency-key"] == headers(again)["idempotency-key"] == "back"


def test_a_replay_is_as_old_as_its_first_answer(shop: Shop) -> None:
    created = shop.create(key="make")
    assert shop.confirm(created).status == "succeeded"
    assert shop.create(key="make").status == "requires_confirmation"


def test_the_order_of_parameters_does_not_matter(shop: Shop) -> None:
    first = shop.v1.customers.create({"name": "Ada", "metadata": {"a": "1", "b": "2"}}, {"idempotency_key": "ada"})
    again = shop.v1.customers.create({"metadata": {"b": "2", "a": "1"}, "name": "Ada"}, {"idempotency_key": "ada"})
    assert again.id == first.id


def test_a_key_names_one_request(shop: Shop) -> None:
    intent = shop.create(key="make")
    with pytest.raises(stripe.IdempotencyError, match="same parameters") as other:
        shop.create(key="make", amount=1001)
    assert (other.value.http_status, other.value.error.type) == (400, "idempotency_error")
    with pytest.raises(stripe.IdempotencyError, match="same endpoint"):
        shop.confirm(intent, key="make")
    with pytest.raises(stripe.IdempotencyError, match="same parameters"):
        shop.create(key="make", colour="red")
    assert shop.create(key="make").id == intent.id


def test_a_second_request_meanwhile_is_a_conflict(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.create()
    rule = sandbox.fault("during", "sleep", path="/v1/payment_intents/.*/confirm", seconds=1)["id"]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(shop.confirm, intent, key="pay")
        until(lambda: any(found["id"] == rule and found["struck"] for found in sandbox.control("faults")["faults"]))
        with pytest.raises(stripe.APIError) as conflict:
            shop.confirm(intent, key="pay")
        assert (conflict.value.http_status, conflict.value.error.code) == (409, "idempotency_key_in_use")
        assert first.result().status == "succeeded"
    assert headers(shop.confirm(intent, key="pay"))["idempotent-replayed"] == "true"
    assert len(sandbox.movements(account)) == 1


def test_many_at_once_move_money_once(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.charge()

    def refund(_: int) -> str:
        try:
            return shop.refund(intent, amount=100, key="back").id
        except stripe.APIError as conflict:
            return str(conflict.error.code)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(refund, range(24)))
    assert len(answers - {"idempotency_key_in_use"}) == 1
    assert [line["amount"] for line in sandbox.movements(account)] == [1000, -100]


def test_a_decline_is_saved(shop: Shop) -> None:
    intent = shop.create("pm_card_chargeCustomerFail")
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            shop.confirm(intent, key="pay")
    assert len(shop.v1.charges.list({"payment_intent": intent.id}).data) == 1


def test_a_400_of_execution_is_saved(shop: Shop, sandbox: Sandbox) -> None:
    intent = shop.charge("pm_card_pendingRefund")
    refund = shop.refund(intent, amount=400)
    with pytest.raises(stripe.InvalidRequestError) as first:
        shop.refund(intent, amount=1000, key="all")
    sandbox.control("settle", {"id": refund.id, "status": "canceled"})
    with pytest.raises(stripe.InvalidRequestError) as again:
        shop.refund(intent, amount=1000, key="all")
    assert str(again.value.user_message) == str(first.value.user_message)
    assert again.value.headers["Idempotent-Replayed"] == "true"


def test_a_400_of_parameters_is_not_saved(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        shop.create(key="make", amount=1)
    assert shop.create(key="make").status == "requires_confirmation"


def test_a_401_is_not_saved(shop: Shop, sandbox: Sandbox, account: str) -> None:
    with pytest.raises(stripe.AuthenticationError):
        sandbox.client(account, key="sk_test_another").v1.customers.create({}, {"idempotency_key": "ada"})
    assert shop.v1.customers.create({"name": "Ada"}, {"idempotency_key": "ada"}).name == "Ada"


def test_keys_belong_to_an_account(shop: Shop, sandbox: Sandbox) -> None:
    ada = shop.v1.customers.create({}, {"idempotency_key": "ada"})
    other = sandbox.client("acct_neighbour").v1.customers.create({"name": "Eve"}, {"idempotency_key": "ada"})
    assert (other.id != ada.id, other.name) == (True, "Eve")


def test_a_key_is_forgotten_after_24_hours(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.charge()
    first = shop.refund(intent, amount=100, key="back")
    sandbox.advance(DAY - 60)
    assert shop.refund(intent, amount=100, key="back").id == first.id
    sandbox.advance(60)
    assert shop.refund(intent, amount=100, key="back").id != first.id
    assert [line["amount"] for line in sandbox.movements(account)] == [1000, -100, -100]


def test_after_24_hours_a_confirmed_intent_still_pays_once(shop: Shop, sandbox: Sandbox, account: str) -> None:
    intent = shop.create()
    shop.confirm(intent, key="pay")
    sandbox.advance(DAY)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.confirm(intent, key="pay")
    assert refused.value.code == "payment_intent_unexpected_state"
    assert len(sandbox.movements(account)) == 1


def test_keys_have_255_characters_and_no_meaning_on_get(shop: Shop, sandbox: Sandbox) -> None:
    assert shop.v1.customers.create({}, {"idempotency_key": "k" * 255}).id
    with pytest.raises(stripe.InvalidRequestError, match="255"):
        shop.v1.customers.create({}, {"idempotency_key": "k" * 256})
    given = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": "k" * 300}
    assert sandbox.session.get(f"{sandbox.base}/v1/customers", headers=given).status_code == 200
