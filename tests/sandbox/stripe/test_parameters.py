"""Parameters, amounts, keys of the API, and lists."""

from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import KEY, Sandbox


@pytest.mark.parametrize(
    ("more", "param", "code"),
    [
        ({"colour": "red"}, "colour", "parameter_unknown"),
        ({"idempotency_key": "k"}, "idempotency_key", "parameter_unknown"),
        ({"automatic_payment_methods": {"enabled": True, "odd": 1}, "payment_method_types": None}, "odd", "parameter_unknown"),
        ({"amount": None}, "amount", "parameter_missing"),
        ({"amount": "ten"}, "amount", "parameter_invalid_integer"),
        ({"amount": "10.0"}, "amount", "parameter_invalid_integer"),
        ({"amount": -100}, "amount", "parameter_invalid_integer"),
        ({"amount": 100_000_000}, "amount", "parameter_invalid_integer"),
        ({"amount": 49}, "amount", "amount_too_small"),
        ({"amount": 29, "currency": "gbp"}, "amount", "amount_too_small"),
        ({"currency": "EUR"}, "currency", None),
        ({"currency": "eux"}, "currency", None),
        ({"currency": "isk", "amount": 1050}, "amount", None),
        ({"currency": "kwd", "amount": 5124}, "amount", None),
        ({"description": ""}, "description", "parameter_invalid_empty"),
        ({"customer": "cus_none"}, "customer", "resource_missing"),
        ({"payment_method": "pm_none"}, "payment_method", "resource_missing"),
        ({"off_session": True}, "off_session", None),
        ({"capture_method": "manual"}, "capture_method", None),
        ({"metadata": {"k" * 41: "v"}}, "metadata", None),
        ({"metadata": {"k": "v" * 501}}, "metadata", None),
        ({"metadata": {f"k{number}": "v" for number in range(51)}}, "metadata", None),
        ({"expand": ["amount"]}, "expand", None),
    ],
)
def test_it_refuses_what_stripe_refuses(shop: Shop, more: dict[str, Any], param: str, code: str | None) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.create(**more)
    assert (refused.value.http_status, refused.value.param, refused.value.code) == (400, param, code)


@pytest.mark.parametrize(("currency", "amount"), [("jpy", 50), ("isk", 1000), ("kwd", 5120), ("usd", 99_999_999)])
def test_it_takes_amounts_as_each_currency_has_them(shop: Shop, currency: str, amount: int) -> None:
    assert shop.create(currency=currency, amount=amount).amount == amount


def test_a_wrong_key_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(stripe.AuthenticationError) as refused:
        sandbox.client(key="sk_test_another").v1.customers.list()
    assert refused.value.http_status == 401
    assert "sk_test_another" not in str(refused.value)
    assert sandbox.session.get(f"{sandbox.base}/v1/customers").status_code == 401


def test_errors_carry_a_request_id_and_unknown_urls_are_404(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="Unrecognized request URL") as refused:
        client.v1.products.list()
    assert (refused.value.http_status, str(refused.value.request_id)[:4]) == (404, "req_")


def test_lists_page_in_both_directions(shop: Shop) -> None:
    made = [shop.create().id for _ in range(5)]
    newest_first = made[::-1]
    page = shop.v1.payment_intents.list({"limit": 2})
    assert ([found.id for found in page.data], page.has_more) == (newest_first[:2], True)
    following = shop.v1.payment_intents.list({"limit": 3, "starting_after": page.data[-1].id})
    assert ([found.id for found in following.data], following.has_more) == (newest_first[2:], False)
    before = shop.v1.payment_intents.list({"limit": 2, "ending_before": newest_first[3]})
    assert ([found.id for found in before.data], before.has_more) == (newest_first[1:3], True)
    assert [found.id for found in shop.v1.payment_intents.list({"limit": 2}).auto_paging_iter()] == newest_first
    for wrong in ({"limit": 0}, {"limit": 101}, {"starting_after": "pi_none"}):
        with pytest.raises(stripe.InvalidRequestError):
            shop.v1.payment_intents.list(wrong)


def test_lists_filter_by_customer_and_time(shop: Shop, sandbox: Sandbox) -> None:
    early = shop.create()
    now = sandbox.advance(100)
    late = shop.create(customer=shop.v1.customers.create({}).id)

    def listed(**filters: Any) -> list[str]:
        return [found.id for found in shop.v1.payment_intents.list(filters).data]

    assert listed(customer=shop.customer) == [early.id]
    assert (listed(created={"gte": now}), listed(created={"lt": now})) == ([late.id], [early.id])
    assert (listed(created={"gt": early.created, "lte": late.created}), listed(created=early.created)) == ([late.id], [early.id])


def test_every_list_that_looks_for_what_an_unknown_outcome_left_filters(shop: Shop, sandbox: Sandbox) -> None:
    early = shop.confirm(shop.create(), key="early")
    shop.refund(early, amount=100)
    now = sandbox.advance(100)
    late = shop.confirm(shop.create(), key="late")
    refund = shop.refund(late, amount=200, key="back")
    v1 = shop.v1
    assert [one.id for one in v1.refunds.list({"created": {"gte": now}}).data] == [refund.id]
    assert [one.payment_intent for one in v1.charges.list({"customer": shop.customer, "created": {"lt": now}}).data] == [early.id]
    events = v1.events.list({"types": ["refund.created", "payment_intent.succeeded"], "created": {"gte": now}}).data
    assert [(event.data.object.id, event.request.idempotency_key) for event in events] == [(refund.id, "back"), (late.id, "late")]
    email = f"{shop.customer}@shop.test"
    found = v1.customers.create({"email": email})
    assert [one.id for one in v1.customers.list({"email": email}).data] == [found.id]


def test_it_answers_bodies_that_are_no_form(sandbox: Sandbox) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    for body in (b"\xff\xfe", b"amount=%ff", b"a=1&a[b]=2", b"[x]=1", b"=1"):
        answer = sandbox.session.post(f"{sandbox.base}/v1/payment_intents", data=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    chunked = sandbox.session.post(f"{sandbox.base}/v1/customers", data=iter([b"name=", b"Ada"]), headers=headers)
    assert chunked.status_code == 411
    assert sandbox.session.post(f"{sandbox.base}/v1/customers", data=b"x" * 1_000_001, headers=headers).status_code == 413
