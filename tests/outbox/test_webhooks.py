"""Events: who may send one, what is kept, and that their order does not matter."""

import json
import time
from typing import Any

import pytest
from django.test import Client

from outbox import finishing, leases, webhooks
from outbox.outcomes import Outcome
from tests.outbox.desk import Desk
from tests.outbox.events import SECRET, event_of, send, signed

CONFIRM = "/v1/payment_intents/[^/]+/confirm"


@pytest.fixture(autouse=True)
def _secrets(settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRETS, settings.STRIPE_MODE = ["whsec_older", SECRET], "test"


def kept(owner: Any) -> int:
    return int(owner.execute("SELECT count(*) FROM public.outbox_webhook_event").fetchone()[0])


def test_it_keeps_an_event_once(database: None, owner: Any) -> None:
    body = json.dumps(event_of())

    assert [send(body).status_code for _ in range(3)] == [200, 200, 200]

    assert kept(owner) == 1


@pytest.mark.parametrize("secret", ["whsec_older", SECRET])
def test_it_takes_every_secret_of_ours(database: None, owner: Any, secret: str) -> None:
    body = json.dumps(event_of())

    assert send(body, signed(body, secret=secret)).status_code == 200


BODY = json.dumps(event_of())


MALFORMED: list[tuple[str | bytes, str | None]] = [
    (BODY, signed(BODY, secret="whsec_foreign")),
    (BODY, signed(BODY, at=time.time() - 4000)),
    (BODY, signed(BODY, at=time.time() + 4000)),
    (BODY, ""),
    (BODY, "nonsense"),
    (BODY, "t=x,v1=y"),
    (BODY, "t=1"),
    (BODY, signed(BODY).replace("v1=", "v1=ü")),
    (BODY + " ", signed(BODY)),
    ("", None),
    ("not JSON", None),
    ("[]", None),
    ("[" * 100_000, None),
    ('{"object": "event", "id": NaN}', None),
    ('{"object": "thin_event"}', None),
    (json.dumps(event_of(id="")), None),
    (json.dumps(event_of(id=7)), None),
    (json.dumps(event_of(id="e" * 300)), None),
    (json.dumps(event_of(type=None)), None),
    (json.dumps(event_of(id=None)), None),
    (json.dumps(event_of(type=["payment_intent.succeeded"])), None),
    (json.dumps(event_of(type="")), None),
    (json.dumps(event_of(more="\x00")), None),
    (json.dumps(event_of(more="\ud800")), None),
    (json.dumps(event_of(id="evt_\ud800")), None),
    (json.dumps(event_of(id="evt_\x00")), None),
    (b"\xff\xfe", None),
]


def test_it_answers_400_to_what_is_no_event_of_the_provider(database: None, owner: Any) -> None:
    for number, (body, signature) in enumerate(MALFORMED):
        assert send(body, signature).status_code == 400, number

    assert kept(owner) == 0


@pytest.mark.parametrize(
    ("mode", "livemode", "status"),
    [
        ("test", False, 200),
        ("test", True, 400),
        ("live", True, 200),
        ("live", False, 400),
        ("", False, 400),
        ("", True, 400),
        *[(mode, odd, 400) for mode in ("test", "live", "") for odd in (None, "false", "true", 0, 1, [], {})],
    ],
)
def test_it_takes_events_of_our_mode_only(
    database: None, owner: Any, settings: Any, caplog: Any, mode: str, livemode: Any, status: int
) -> None:
    settings.STRIPE_MODE = mode

    answer = send(json.dumps(event_of(livemode=livemode)))

    assert (answer.status_code, kept(owner)) == (status, int(status == 200))
    said = f"The event is not of the {mode} mode." if mode else "No mode is known to take events of: STRIPE_MODE is not set."
    assert answer.content.decode() == (said if status == 400 else "")
    refused = [record for record in caplog.records if "outbox.webhook.refused" in record.getMessage()]
    assert len(refused) == int(status == 400)


def test_it_takes_no_event_that_says_nothing_of_its_mode(database: None, owner: Any) -> None:
    event = {name: value for name, value in event_of().items() if name != "livemode"}

    assert (send(json.dumps(event)).status_code, kept(owner)) == (400, 0)


def test_it_takes_no_body_that_is_larger_than_any_event(database: None, owner: Any) -> None:
    assert send(json.dumps(event_of(more="x" * 200_000))).status_code == 200
    assert send(json.dumps(event_of(id="evt_2", more="x" * 300_000))).status_code == 413
    assert kept(owner) == 1


def test_it_takes_events_by_post_only(database: None) -> None:
    assert Client().get("/webhooks/stripe").status_code == 405


def process(
    desk: Desk,
    message: dict[str, Any],
    type_: str,
    *,
    object_id: str | None = None,
    event_id: str = "evt_1",
    status: str | None = None,
    **more: Any,
) -> str | None:
    """Store an event about the message's object, process what is due, and return what became of it."""
    known = object_id or desk.read(message)["provider_id"] or "pi_new"
    about = {"id": known, "metadata": {"backstop_uid": str(message["uid"])}, "status": status}
    desk.owner.execute(
        "INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload) VALUES (%s, %s, %s, %s)",
        (event_id, type_, known, json.dumps(event_of(data={"object": about}, **more))),
    )
    webhooks.process_due(desk.pool, go_on=lambda: True)
    found: str | None = desk.one("SELECT outcome FROM public.outbox_webhook_event WHERE event_id = %s", event_id)["outcome"]
    return found


def test_it_settles_what_the_provider_had_not_finished(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "succeeded")

    assert process(desk, message, "payment_intent.succeeded") == "settled: succeeded"

    after = desk.read(message)
    assert (after["state"], after["outcome_source"], desk.invoice(message)) == ("succeeded", "webhook", "paid")
    assert desk.deliveries(message)[-1] == ("webhook", "succeeded")


def test_it_believes_the_object_and_not_the_event(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()
    desk.deliver()

    assert process(desk, message, "payment_intent.succeeded") == "noted: processing"
    assert desk.read(message)["state"] == "accepted"


def test_it_settles_a_refund_that_failed_later(desk: Desk) -> None:
    desk.card("pm_card_pendingRefund")
    message = desk.refund(desk.paid())
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")

    assert process(desk, message, "refund.failed") == "settled: rejected"
    assert desk.refund_status(message) == "refused"


def test_it_settles_a_charge_whose_answer_was_lost(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    assert desk.read(message)["state"] == "uncertain"

    assert process(desk, message, "payment_intent.succeeded") == "settled: succeeded"


def test_it_comes_before_our_own_answer(desk: Desk) -> None:
    """The event is there while the worker still waits: its own answer is evidence, and the end is the same."""
    desk.charge()
    message = desk.claim()
    assert message
    with desk.pool.connection() as conn:
        begun = leases.begin_send(conn, message=message)
    made = desk.provider.create(
        "/v1/payment_intents",
        **{
            "amount": 48_000,
            "currency": "eur",
            "customer": message["steps"][0]["params"]["customer"],
            "payment_method": message["steps"][0]["params"]["payment_method"],
            "automatic_payment_methods[enabled]": "true",
            "automatic_payment_methods[allow_redirects]": "never",
            "confirm": "true",
            "metadata[backstop_uid]": str(message["uid"]),
        },
    )

    assert process(desk, message, "payment_intent.succeeded", object_id=made["id"]) == "settled: succeeded"

    with pytest.raises(leases.LeaseLost):
        finishing.finish(desk.pool, finishing.ending(begun, Outcome(kind="uncertain"), source="response"))
    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")


def test_it_comes_after_our_own_answer(desk: Desk) -> None:
    message = desk.charge()
    desk.deliver()
    before = desk.read(message)

    assert process(desk, message, "payment_intent.succeeded") == "already succeeded"
    assert process(desk, message, "payment_intent.payment_failed", event_id="evt_2") == "already succeeded"
    assert desk.read(message) == before


def test_it_puts_a_refund_that_failed_after_its_success_before_a_person_once(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")

    outcomes = [process(desk, message, kind, status="failed", event_id=kind) for kind in ("refund.failed", "refund.updated")]

    assert outcomes == ["taken back: failed", "already succeeded"]
    after = desk.read(message)
    assert (after["state"], after["provider_status"]) == ("succeeded", "failed")
    assert desk.refund_status(message) == "reversed"
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0
    entered = "SELECT amount_minor, reason FROM public.billing_refund_reversal"
    assert desk.owner.execute(entered).fetchall() == [(10_000, "expired_or_canceled_card")]
    asked = "SELECT kind, payload ->> 'reason' FROM public.escalations_escalation WHERE object = %s"
    why = "but failed afterwards (expired or canceled card): the customer has not got it."
    assert desk.owner.execute(asked, (f"message:{message['id']}",)).fetchall() == [
        ("dirty_state", f"The refund of €100.00 was confirmed, {why}")
    ]


def test_it_does_not_believe_an_event_that_contradicts_the_object(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    before = desk.read(message)

    assert process(desk, message, "refund.failed", status="failed") == "already succeeded"
    assert desk.read(message) == before


def test_it_ignores_another_object_of_the_same_message(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()
    desk.deliver()

    told = process(desk, message, "payment_intent.canceled", object_id="pi_orphan", status="canceled")
    assert told == "another object"
    assert desk.read(message)["state"] == "accepted"


@pytest.mark.parametrize(
    ("type_", "changes", "outcome"),
    [
        ("customer.created", {}, "ignored"),
        ("payment_intent.created", {}, "ignored"),
        ("payment_intent.succeeded", {"livemode": True}, "wrong mode"),
    ],
)
def test_it_passes_over_what_is_not_for_it(desk: Desk, type_: str, changes: dict[str, Any], outcome: str) -> None:
    assert process(desk, desk.charge(), type_, **changes) == outcome


@pytest.mark.parametrize("uid", ["nonsense", 7, "00000000-0000-0000-0000-000000000000", None])
def test_it_leaves_foreign_objects_alone(desk: Desk, uid: Any) -> None:
    message = desk.charge() | {"uid": uid}

    assert process(desk, message | {"id": message["id"]}, "payment_intent.succeeded") in ("not ours",)


def test_it_tries_again_when_the_provider_does_not_answer(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "succeeded")
    desk.provider.fault("before", "500", method="GET")

    assert process(desk, message, "payment_intent.succeeded") is None
    assert webhooks.process_due(desk.pool, go_on=lambda: True) == 0
    desk.owner.execute("UPDATE public.outbox_webhook_event SET received_at = now() - interval '10 s'")
    webhooks.process_due(desk.pool, go_on=lambda: True)

    assert desk.read(message)["state"] == "succeeded"


def test_it_goes_on_after_an_event_whose_effect_fails(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    broken, fine = desk.charge(), desk.charge()
    desk.deliver()
    for message in (broken, fine):
        desk.provider.settle(desk.read(message)["provider_id"], "succeeded")
    desk.unsettle(broken)

    assert process(desk, broken, "payment_intent.succeeded", event_id="evt_1") is None
    assert process(desk, fine, "payment_intent.succeeded", event_id="evt_2") == "settled: succeeded"
    assert desk.read(broken)["state"] == "accepted"
