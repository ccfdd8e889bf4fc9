"""What people may ask of a message, in every state, and what becomes of it."""

from typing import Any

import pytest

from outbox import leases, requests
from outbox.models import Message
from outbox.requests import NotPossible
from tests.outbox.asking import ask, carry_out, outcome
from tests.outbox.desk import Desk

ALLOWED = {"cancel": {"ready", "leased"}, "replay": {"dead"}}


@pytest.mark.parametrize("kind", ["cancel", "replay"])
def test_it_takes_a_request_only_where_it_makes_sense(desk: Desk, web: Any, kind: str) -> None:
    for state in Message.State.values:
        message = desk.charge()
        desk.put(message, state)
        if state in ALLOWED[kind]:
            ask(web, message, kind)  # and only one at a time
        with pytest.raises(NotPossible):
            ask(web, message, kind)


def test_it_withdraws_a_charge_before_it_is_sent(desk: Desk, web: Any) -> None:
    message = desk.charge()
    ask(web, message, "cancel")
    desk.deliver()
    assert desk.read(message)["state"] == "ready"

    assert carry_out(desk) == 1

    assert (desk.read(message)["state"], desk.invoice(message), outcome(desk)) == ("cancelled", "draft", "withdrawn")
    assert carry_out(desk) == 0
    again = desk.charge_again(message["payload"]["invoice_id"])
    desk.deliver()
    assert desk.read(again)["state"] == "succeeded"


def test_it_withdraws_a_refund_and_frees_its_amount(desk: Desk, web: Any) -> None:
    message = desk.refund(desk.paid(), 10_000)
    ask(web, message, "cancel")

    carry_out(desk)

    assert desk.refund_status(message) == "withdrawn"
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0


def test_it_comes_too_late_for_what_was_sent(desk: Desk, web: Any) -> None:
    message = desk.charge()
    ask(web, message, "cancel")
    desk.put(message, "uncertain")

    carry_out(desk)

    assert outcome(desk) == "too late: uncertain"
    assert desk.read(message)["state"] == "uncertain"


def test_it_withdraws_what_provably_never_arrived(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.provider.fault("before", "429", path="/v1/payment_intents")
    desk.deliver_once()
    ask(web, message, "cancel")

    carry_out(desk)

    assert desk.read(message)["state"] == "cancelled"


def test_it_waits_for_a_worker_that_has_the_message(desk: Desk, web: Any) -> None:
    message = desk.charge()
    claimed = desk.claim()
    assert claimed
    ask(web, message, "cancel")

    assert carry_out(desk) == 0
    assert outcome(desk) is None

    with desk.pool.connection() as conn:
        leases.begin_send(conn, message=claimed)
    assert carry_out(desk) == 1
    assert outcome(desk) == "too late: leased"


def test_it_sends_a_dead_message_that_never_left(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET attempts = max_attempts")
    desk.deliver_once()
    ask(web, message, "replay")

    carry_out(desk)

    assert (desk.read(message)["state"], desk.read(message)["attempts"], outcome(desk)) == ("ready", 0, "put back")
    desk.deliver()
    assert desk.invoice(message) == "paid"


def test_it_looks_a_dead_message_up_before_it_sends_it(desk: Desk, web: Any) -> None:
    message = desk.refund(desk.paid())
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (message["id"],))
    desk.provider.fault("after", "drop", path="/v1/refunds")
    desk.deliver_once()
    assert desk.read(message)["state"] == "dead"
    ask(web, message, "replay")

    carry_out(desk)

    assert desk.read(message)["state"] == "uncertain"
    desk.deliver()
    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_does_not_replay_what_may_not_be_repeated(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET compensation_needed = true")
    desk.put(message, "dead")

    with pytest.raises(NotPossible):
        ask(web, message, "replay")


def test_it_does_first_what_asks_nobody(desk: Desk, web: Any) -> None:
    sent = desk.charge()
    desk.deliver()
    waiting = desk.charge()
    ask(web, sent, "look_up")
    ask(web, waiting, "cancel")

    once = iter([True, False])
    with desk.pool.connection() as conn:
        assert requests.carry_out(conn, go_on=lambda: next(once)) == 1

    assert desk.read(waiting)["state"] == "cancelled"


def test_it_goes_on_after_a_request_that_fails(desk: Desk, web: Any) -> None:
    broken, fine = desk.charge(), desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET payload = payload - 'invoice_id' WHERE id = %s", (broken["id"],))
    ask(web, broken, "cancel")
    ask(web, fine, "cancel")

    assert carry_out(desk) == 1

    assert [desk.read(message)["state"] for message in (broken, fine)] == ["ready", "cancelled"]
