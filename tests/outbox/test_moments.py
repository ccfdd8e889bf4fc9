"""An event may come at any moment of our own delivery, and as often as it likes: the end is the same."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from outbox import finishing, leases, webhooks
from outbox.outcomes import Outcome
from tests.outbox.asking import ask, carry_out
from tests.outbox.desk import Desk, Row
from tests.outbox.events import stored

CONFIRM = "/v1/payment_intents/[^/]+/confirm"
SUCCEEDED = "payment_intent.succeeded"


def told(desk: Desk, message: Row, *, kind: str = SUCCEEDED, event_id: str = "evt_1", status: str = "succeeded") -> str | None:
    """Let the event of the message's object come, and return what became of it."""
    made = desk.provider.objects("refund" if kind.startswith("refund") else "payment_intent", message["uid"])[0]
    about = {"id": made["id"], "metadata": {"backstop_uid": str(message["uid"])}, "status": status}
    stored(desk.owner, kind=kind, about=about, event_id=event_id)
    webhooks.process_due(desk.pool, go_on=lambda: True)
    found: str | None = desk.one("SELECT outcome FROM public.outbox_webhook_event WHERE event_id = %s", event_id)["outcome"]
    return found


def begun(desk: Desk, message: Row) -> Row:
    """Let a worker have created the intent, and have written that it is about to confirm it."""
    desk.provider.fault("before", "drop", path=CONFIRM)
    desk.deliver_once()
    desk.due(message)
    claimed = desk.claim()
    assert claimed
    with desk.pool.connection() as conn:
        return leases.begin_send(conn, message=claimed)


def confirmed(desk: Desk, message: Row) -> None:
    """Let the confirmation be executed at the provider, whatever became of its answer."""
    intent = desk.provider.objects("payment_intent", message["uid"])[0]["id"]
    desk.provider.create(f"/v1/payment_intents/{intent}/confirm", off_session="true", key=f"{message['uid']}:confirm")


def during(desk: Desk, message: Row) -> None:
    held = begun(desk, message)
    confirmed(desk, message)
    assert told(desk, message) == "settled: succeeded"
    with pytest.raises(leases.LeaseLost):  # the worker's own answer comes now: it is evidence, and changes nothing
        finishing.finish(desk.pool, finishing.ending(held, Outcome(kind="succeeded", provider_id="pi_1"), source="response"))


def after_a_lost_answer(desk: Desk, message: Row) -> None:
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    assert told(desk, message) == "settled: succeeded"


def after_an_error_that_stays(desk: Desk, message: Row) -> None:
    """The first answer is a 500 that the provider keeps for the key, though it took the money: it says so again and again."""
    desk.provider.fault("during", "500_effect", path=CONFIRM)
    desk.deliver_once()
    assert desk.read(message)["state"] == "uncertain"
    assert told(desk, message) == "settled: succeeded"


def after_our_own_answer(desk: Desk, message: Row) -> None:
    desk.deliver()
    assert told(desk, message) == "already succeeded"


def twice_by_its_id(desk: Desk, message: Row) -> None:
    after_a_lost_answer(desk, message)
    desk.owner.execute("UPDATE public.outbox_webhook_event SET processed_at = NULL, received_at = now() - interval '1 hour'")
    webhooks.process_due(desk.pool, go_on=lambda: True)


def twice_by_two_ids(desk: Desk, message: Row) -> None:
    after_a_lost_answer(desk, message)
    assert told(desk, message, event_id="evt_2") == "same as evt_1"


def after_an_event_that_is_old(desk: Desk, message: Row) -> None:
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    assert told(desk, message, kind="payment_intent.payment_failed", event_id="evt_0", status="requires_payment_method")
    assert told(desk, message) == "already succeeded"


def while_a_person_adopts(desk: Desk, message: Row) -> None:
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1")
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    ask(desk.web, message, "adopt")
    assert told(desk, message) == "settled: succeeded"
    carry_out(desk)


def before_a_person_adopts_what_a_worker_has(desk: Desk, message: Row) -> None:
    begun(desk, message)
    confirmed(desk, message)
    desk.owner.execute(
        "INSERT INTO public.outbox_request (message_id, kind, reason, requested_by) VALUES (%s, 'adopt', 'r', 7)",
        (message["id"],),
    )
    assert carry_out(desk) == 0  # the worker has it: it may be about to write what it knows
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 second'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)
    assert carry_out(desk) == 1


MOMENTS: list[Callable[[Desk, Row], None]] = [
    during,
    after_a_lost_answer,
    after_an_error_that_stays,
    after_our_own_answer,
    twice_by_its_id,
    twice_by_two_ids,
    after_an_event_that_is_old,
    while_a_person_adopts,
    before_a_person_adopts_what_a_worker_has,
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_the_end_is_the_same(desk: Desk, web: Any, moment: Callable[[Desk, Row], None]) -> None:
    desk.web = web
    message = desk.charge()

    moment(desk, message)
    desk.deliver_all(message)

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert desk.one("SELECT count(*) AS number FROM public.billing_payment")["number"] == 1
    asked = "SELECT count(*) AS number FROM public.escalations_escalation WHERE state IN ('open', 'claimed')"
    assert desk.one(asked)["number"] == 0


def test_all_who_know_come_at_once(desk: Desk, web: Any) -> None:
    """A relay that looks it up, a person's request and two events of the provider meet on one message, again and again."""
    for number in range(4):
        message = desk.charge()
        desk.provider.fault("after", "drop", path=CONFIRM)
        desk.deliver_once()
        desk.due(message)
        made = desk.provider.objects("payment_intent", message["uid"])[0]
        about = {"id": made["id"], "metadata": {"backstop_uid": str(message["uid"])}, "status": "succeeded"}
        for twin in (0, 1):
            stored(desk.owner, kind=SUCCEEDED, about=about, event_id=f"evt_{number}_{twin}")
        if number % 2:
            ask(web, message, "look_up")
        acts: list[Callable[[], Any]] = [
            desk.deliver,
            lambda: carry_out(desk),
            lambda: webhooks.process_due(desk.pool, go_on=lambda: True),
            lambda: webhooks.process_due(desk.pool, go_on=lambda: True),
        ]
        threads = [threading.Thread(target=act) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
        assert desk.provider.movements(message["uid"]) == [48_000]
    assert desk.one("SELECT count(*) AS number FROM public.billing_payment")["number"] == 4
    events = "SELECT count(*) AS number FROM public.outbox_webhook_event WHERE processed_at IS NULL"
    assert desk.one(events)["number"] == 0


def test_two_events_of_one_type_about_two_changes_both_count(desk: Desk) -> None:
    """A refund is updated when it is done, and again when it fails: neither is a double of the other."""
    desk.card("pm_card_pendingRefund")
    message = desk.refund(desk.paid())
    desk.deliver()
    refund = desk.read(message)["provider_id"]

    said = []
    for number, status in enumerate(("succeeded", "failed")):
        desk.provider.settle(refund, status)
        said.append(told(desk, message, kind="refund.updated", event_id=f"evt_{number}", status=status))

    assert said == ["settled: succeeded", "taken back: failed"]
    assert desk.refund_status(message) == "reversed"
