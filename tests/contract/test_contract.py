"""What we rely on of the provider, one assumption a test, through our own gateway and with our own requests."""

import time
from typing import Any

import pytest

from outbox import lookups
from outbox.gateway import get as raw_get
from tests.contract.conftest import Shop, get, post, shop_with


def test_a_charge_is_created_without_moving_money_and_takes_it_when_it_is_confirmed(shop: Shop) -> None:
    charge = shop.charge()

    created = charge.send(0)[1]
    assert (created.kind, created.provider_status) == ("advanced", "requires_confirmation")
    confirmed = charge.send(1, known=str(created.provider_id))[1]

    assert (confirmed.kind, confirmed.provider_id) == ("succeeded", created.provider_id)
    found = get(f"/v1/payment_intents/{created.provider_id}")
    assert (found["status"], found["amount_received"], found["livemode"]) == ("succeeded", 48_000, False)
    assert found["metadata"]["backstop_uid"] == str(charge.uid)


def test_the_same_key_with_the_same_bytes_answers_what_it_answered(shop: Shop) -> None:
    charge = shop.charge()
    (first, _), (again, judged) = charge.send(0), charge.send(0)

    assert first.body and again.body and first.body["id"] == again.body["id"]
    assert (first.replayed, again.replayed, judged.verify) == (False, True, True)


@pytest.mark.parametrize("case", ["other parameters", "another address"])
def test_the_same_key_for_something_else_is_an_error_that_says_nothing_of_the_first(shop: Shop, case: str) -> None:
    charge = shop.charge()
    created = charge.send(0)[1]
    key = f"{charge.uid}:0"

    outcome = (
        charge.send(0, amount=700)[1]
        if case == "other parameters"
        else charge.send(1, known=str(created.provider_id), key=key)[1]
    )

    assert (outcome.kind, outcome.verify) == ("dead", True)


def test_a_decline_is_saved_for_its_key_and_leaves_the_intent_as_refused(provider: str) -> None:
    charge = shop_with("pm_card_chargeCustomerFail").charge()
    created = str(charge.send(0)[1].provider_id)

    (first, declined), (again, _) = charge.send(1, known=created), charge.send(1, known=created)

    assert (first.status, declined.kind, declined.provider_id) == (402, "rejected", created)
    assert (again.status, again.replayed) == (402, True)
    look = lookups.judged(raw_get(f"/v1/payment_intents/{created}", {}), asked=charge.steps[0][1])
    assert (look.kind, look.outcome.kind) == ("known", "rejected")


def test_a_card_that_needs_its_owner_is_declined_off_session(provider: str) -> None:
    outcome = shop_with("pm_card_authenticationRequired").charge().all()

    assert (outcome.kind, outcome.refusal) == ("rejected", "authentication_required")


def test_an_intent_takes_its_money_once_however_often_it_is_confirmed(shop: Shop) -> None:
    charge = shop.charge()
    created = str(charge.send(0)[1].provider_id)
    charge.send(1, known=created)

    outcome = charge.send(1, known=created, key="another-" + str(charge.uid))[1]

    assert (outcome.kind, outcome.verify, outcome.provider_id) == ("uncertain", True, created)
    assert get(f"/v1/payment_intents/{created}")["amount_received"] == 48_000


def test_a_cancelled_intent_takes_nothing(shop: Shop) -> None:
    charge = shop.charge()
    created = str(charge.send(0)[1].provider_id)

    assert post(f"/v1/payment_intents/{created}/cancel", {}).status == 200

    assert charge.send(1, known=created)[1].kind == "uncertain"  # an unexpected state: it is looked up
    look = lookups.judged(raw_get(f"/v1/payment_intents/{created}", {}), asked=charge.steps[0][1])
    assert (look.outcome.kind, look.outcome.provider_status) == ("rejected", "canceled")


def test_a_list_of_a_customers_intents_has_what_was_just_made(shop: Shop) -> None:
    charges = [shop.charge() for _ in range(3)]
    made = [str(charge.send(0)[1].provider_id) for charge in charges]
    since = int(time.time()) - 300

    found: list[dict[str, Any]] = []
    while True:
        after = {"starting_after": found[-1]["id"]} if found else {}
        page = get("/v1/payment_intents", customer=shop.customer, limit=1, created={"gte": since}, **after)
        found += page["data"]
        if not page["has_more"]:
            break

    assert [one["id"] for one in found] == made[::-1]
    assert [one["metadata"]["backstop_uid"] for one in found] == [str(charge.uid) for charge in charges][::-1]


def test_a_refund_is_made_in_parts_and_found_by_its_payment(shop: Shop) -> None:
    intent = shop.paid()
    refunds = [shop.refund(intent, amount) for amount in (10_000, 5_000)]

    assert [refund.all().kind for refund in refunds] == ["succeeded", "succeeded"]

    found = get("/v1/refunds", payment_intent=intent, limit=100)["data"]
    assert {one["metadata"]["backstop_uid"]: one["amount"] for one in found} == {
        str(refunds[0].uid): 10_000,
        str(refunds[1].uid): 5_000,
    }


def test_more_than_is_left_is_refused_without_a_code(shop: Shop) -> None:
    answer, outcome = shop.refund(shop.paid(), 48_001).send()

    assert (answer.status, answer.error.get("param"), answer.error.get("code")) == (400, "amount", None)
    assert (outcome.kind, outcome.verify) == ("rejected", True)


def test_what_was_refunded_wholly_is_refused_by_that_name(shop: Shop) -> None:
    intent = shop.paid()
    shop.refund(intent, 48_000).all()

    outcome = shop.refund(intent, 1).all()

    assert (outcome.kind, outcome.refusal, outcome.verify) == ("rejected", "charge_already_refunded", True)


def test_a_credit_note_links_a_refund_moves_nothing_and_is_found_by_its_invoice(shop: Shop) -> None:
    intent = shop.paid()
    invoice, refund = shop.invoice(intent), str(shop.refund(intent, 10_000).all().provider_id)
    note = shop.credit_note(invoice, refund)

    answer, outcome = note.send()

    assert (outcome.kind, outcome.provider_status) == ("succeeded", "issued")
    assert answer.body and [(one["refund"], one["amount_refunded"]) for one in answer.body["refunds"]] == [(refund, 10_000)]
    (found,) = get("/v1/credit_notes", invoice=invoice, limit=100)["data"]
    assert (found["id"], found["metadata"]["backstop_uid"]) == (outcome.provider_id, str(note.uid))
    assert [one["id"] for one in get("/v1/refunds", payment_intent=intent, limit=100)["data"]] == [refund]
    look = lookups.judged(raw_get(f"/v1/credit_notes/{outcome.provider_id}", {}), asked=note.steps[0][1])
    assert (look.kind, look.outcome.kind) == ("known", "succeeded")


def test_a_refund_is_linked_by_one_credit_note_which_nobody_can_void(shop: Shop) -> None:
    intent = shop.paid()
    invoice, refund = shop.invoice(intent), str(shop.refund(intent, 10_000).all().provider_id)
    note = str(shop.credit_note(invoice, refund).all().provider_id)

    assert shop.credit_note(invoice, refund).all().kind == "rejected"
    assert post(f"/v1/credit_notes/{note}/void", {}).status == 400
    assert [(one["id"], one["status"]) for one in get("/v1/credit_notes", invoice=invoice)["data"]] == [(note, "issued")]


def test_a_credit_note_over_another_amount_than_the_refund_it_links_is_refused(shop: Shop) -> None:
    intent = shop.paid()
    invoice, refund = shop.invoice(intent), str(shop.refund(intent, 10_000).all().provider_id)

    assert shop.credit_note(invoice, refund, 10_001).all().kind == "rejected"
    assert get("/v1/credit_notes", invoice=invoice)["data"] == []


def test_a_parameter_that_is_wrong_is_not_saved_for_its_key(shop: Shop) -> None:
    charge = shop.charge()
    assert charge.send(0, bogus="x")[1].refusal == "parameter_unknown"

    assert charge.send(0)[1].kind == "advanced"


def test_what_is_not_there_is_named_so(shop: Shop) -> None:
    charge = shop.charge()

    assert charge.send(1, known="pi_nowhere")[1].refusal == "resource_missing"
    assert raw_get("/v1/payment_intents/pi_nowhere", {}).status == 404


def test_a_wrong_key_is_refused_before_anything_is_done(shop: Shop, settings: Any) -> None:
    charge, right = shop.charge(), settings.STRIPE_API_KEY
    settings.STRIPE_API_KEY = "sk_test_wrong"
    assert charge.send(0)[1].kind == "park"

    settings.STRIPE_API_KEY = right
    answer, outcome = charge.send(0)
    assert (outcome.kind, answer.replayed) == ("advanced", False)


@pytest.mark.parametrize(("currency", "minor", "sent"), [("JPY", 500, 500), ("ISK", 700, 70_000), ("HUF", 48_000, 48_000)])
def test_an_amount_is_counted_in_the_currencys_own_units(shop: Shop, currency: str, minor: int, sent: int) -> None:
    intent = shop.paid(amount_minor=minor, currency=currency)

    found = get(f"/v1/payment_intents/{intent}")
    assert (found["amount_received"], found["currency"]) == (sent, currency.lower())
    assert shop.refund(intent, 1 if currency != "HUF" else 100, currency=currency).all().kind == "succeeded"


def test_an_amount_between_two_units_is_refused(shop: Shop) -> None:
    assert shop.charge(amount_minor=700, currency="ISK").send(0, amount=70_050)[1].kind == "rejected"


def test_an_event_names_the_key_of_the_request_that_caused_it(shop: Shop) -> None:
    charge = shop.charge()
    created = str(charge.send(0)[1].provider_id)
    deadline = time.monotonic() + 15

    while time.monotonic() < deadline:
        events = get("/v1/events", type="payment_intent.created", limit=20)["data"]
        keys = [event["request"]["idempotency_key"] for event in events if event["data"]["object"]["id"] == created]
        if keys:
            break

    assert keys == [f"{charge.uid}:0"]
