"""The time that a key is good for, and what happens to a step when it is over."""

from tests.outbox.desk import Desk

CONFIRM = "/v1/payment_intents/[^/]+/confirm"


def keys(desk: Desk, kind: str, uid: object) -> int:
    return len(desk.provider.objects(kind, uid))


def test_it_creates_the_intent_anew_when_the_old_key_is_too_old(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("before", "drop", path="/v1/payment_intents")
    desk.deliver_once()
    desk.later(message, hours=25)

    desk.deliver_all(message)

    assert desk.read(message)["state"] == "succeeded"
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert desk.deliveries(message)[1] == ("lookup", "absent")


def test_it_finds_what_was_created_a_day_ago_and_charges_once(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("after", "drop", path="/v1/payment_intents")
    desk.deliver_once()
    desk.later(message, hours=30)

    desk.deliver_all(message)

    assert desk.deliveries(message)[1:] == [("lookup", "unsent"), ("confirm", "succeeded")]
    assert keys(desk, "payment_intent", message["uid"]) == 1
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_confirms_a_known_intent_after_any_time(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("before", "drop", path=CONFIRM)
    desk.deliver_once()
    desk.later(message, hours=40)

    desk.deliver_all(message)

    after = desk.read(message)
    assert (after["state"], after["key_generation"]) == ("succeeded", 2)
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_does_not_confirm_twice_what_was_confirmed_a_day_ago(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    desk.later(message, hours=40)

    desk.deliver_all(message)

    assert desk.deliveries(message)[-1] == ("lookup", "succeeded")
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_takes_another_key_when_the_provider_keeps_an_error_for_the_first(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("during", "500", path=CONFIRM)
    desk.deliver_once()

    desk.deliver_all(message)

    confirms = [outcome for step, outcome in desk.deliveries(message) if step == "confirm"]
    assert confirms == ["uncertain", "uncertain", "succeeded"]
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_never_sends_a_refund_whose_key_is_too_old(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.provider.fault("before", "drop", path="/v1/refunds")
    desk.deliver_once()
    desk.later(message, hours=21)

    desk.deliver_all(message)

    after = desk.read(message)
    assert (after["state"], after["sends"]) == ("dead", 1)
    assert after["last_error"] == "nothing was found, and its key is older than 20 hours"
    assert desk.deliveries(message) == [("refund", "uncertain"), ("lookup", "absent")]
    assert desk.refund_status(message) == "queued"
    assert desk.one("SELECT kind FROM public.escalations_escalation WHERE object = %s", f"message:{message['id']}")


def test_it_finds_a_refund_whose_key_is_too_old(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.provider.fault("after", "drop", path="/v1/refunds")
    desk.deliver_once()
    desk.later(message, hours=30)

    desk.deliver_all(message)

    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_keeps_its_key_while_the_provider_refuses_us(desk: Desk, settings: object) -> None:
    message = desk.refund(desk.paid())
    settings.STRIPE_API_KEY = "sk_wrong"  # type: ignore[attr-defined]
    desk.deliver_once()
    desk.later(message, hours=30)
    settings.STRIPE_API_KEY = "sk_test_outbox"  # type: ignore[attr-defined]

    desk.deliver_all(message)

    assert desk.read(message)["state"] == "succeeded"
