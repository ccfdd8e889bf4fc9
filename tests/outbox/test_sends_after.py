"""The time in which what was promised can be taken back."""

from datetime import timedelta
from typing import Any

import pytest
from psycopg import errors

from outbox import requests, sends_after
from outbox.messages import GRACE
from outbox.models import Message
from tests.outbox.desk import Desk

ADMIN = 7


def pause(desk: Desk, seconds: int, topic: str = "payment.charge") -> None:
    with desk.owner.transaction():
        sends_after.set_pause(desk.owner, topic=topic, seconds=seconds, reason="People look twice.", user=ADMIN)


def over(desk: Desk, message: Any) -> None:
    """Let the time to undo be over."""
    desk.owner.execute(
        "UPDATE public.outbox_message SET undo_until = now(), next_attempt_at = now() WHERE id = %s", (message["id"],)
    )


def test_it_lets_messages_leave_at_once_unless_told_otherwise(desk: Desk) -> None:
    message = desk.charge()

    assert message["undo_until"] is None
    assert message["next_attempt_at"] <= message["created_at"]


def test_it_lets_messages_of_a_topic_wait(desk: Desk) -> None:
    pause(desk, 5)
    pause(desk, 60)

    message = desk.charge()

    assert message["undo_until"] - message["created_at"] == timedelta(seconds=60)
    assert message["next_attempt_at"] - message["created_at"] == timedelta(seconds=60) + GRACE
    assert desk.claim() is None


def test_it_lets_other_topics_leave_at_once(desk: Desk) -> None:
    pause(desk, 60, "payment.refund")

    assert desk.charge()["undo_until"] is None


def test_it_is_off_again_with_0_seconds(desk: Desk) -> None:
    pause(desk, 60)
    pause(desk, 0)

    message = desk.charge()

    assert message["undo_until"] is None
    assert message["next_attempt_at"] <= message["created_at"]


def test_it_sends_what_nobody_took_back(desk: Desk) -> None:
    pause(desk, 60)
    message = desk.charge()
    over(desk, message)

    desk.deliver()

    assert desk.read(message)["state"] == "succeeded"


def test_it_adds_nothing_when_that_counts_already(desk: Desk) -> None:
    with pytest.raises(sends_after.NothingChanges):
        pause(desk, 0)
    pause(desk, 60)
    with pytest.raises(sends_after.NothingChanges):
        pause(desk, 60)

    assert desk.one("SELECT count(*) FROM public.outbox_send_after")["count"] == 1


@pytest.mark.parametrize(("topic", "seconds"), [("payment.charge", -1), ("payment.charge", 3601), ("notify.email", 5)])
def test_the_database_refuses_what_makes_no_sense(desk: Desk, topic: str, seconds: int) -> None:
    with pytest.raises(errors.CheckViolation):
        pause(desk, seconds, topic)


def test_a_row_of_it_is_never_changed(desk: Desk, web: Any, outbox: Any) -> None:
    pause(desk, 60)
    for conn in (web, outbox, desk.agent):
        for query in ("UPDATE public.outbox_send_after SET seconds = 0", "DELETE FROM public.outbox_send_after"):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(query)


def test_it_is_taken_back_and_the_invoice_with_it(desk: Desk, web: Any) -> None:
    pause(desk, 60)
    message = desk.charge()

    assert sends_after.undo(web, message=message["id"], user=3)
    with desk.pool.connection() as conn:
        requests.carry_out(conn)

    after = desk.read(message)
    assert (after["state"], after["sends"]) == ("cancelled", 0)
    assert desk.invoice(message) == "draft"  # as it was before the charge
    assert desk.one("SELECT reason, requested_by, outcome FROM public.outbox_request") == {
        "reason": sends_after.REASON,
        "requested_by": 3,
        "outcome": "withdrawn",
    }


def test_it_is_taken_back_once(desk: Desk, web: Any) -> None:
    pause(desk, 60)
    message = desk.charge()

    asked = [sends_after.undo(web, message=message["id"], user=user) for user in (3, 3, 4)]
    with desk.pool.connection() as conn:
        requests.carry_out(conn)

    assert asked == [True, False, False]
    assert not sends_after.undo(web, message=message["id"], user=3)
    assert desk.one("SELECT count(*) FROM public.outbox_request")["count"] == 1


def test_it_is_too_late_once_the_time_is_over(desk: Desk, web: Any) -> None:
    pause(desk, 60)
    message = desk.charge()
    over(desk, message)

    with pytest.raises(sends_after.TooLate):
        sends_after.undo(web, message=message["id"], user=3)

    desk.deliver()
    with pytest.raises(sends_after.TooLate):
        sends_after.undo(web, message=message["id"], user=3)


def test_it_is_too_late_for_what_never_waited(desk: Desk, web: Any) -> None:
    with pytest.raises(sends_after.TooLate):
        sends_after.undo(web, message=desk.charge()["id"], user=3)
    with pytest.raises(sends_after.TooLate):
        sends_after.undo(web, message=4711, user=3)


def test_it_keeps_what_was_undone_in_the_last_moment_from_leaving(desk: Desk, web: Any) -> None:
    pause(desk, 60)
    message = desk.charge()
    sends_after.undo(web, message=message["id"], user=3)
    over(desk, message)  # the worker comes later than the end of the time

    assert desk.claim() is None


def test_it_offers_what_can_be_taken_back(desk: Desk, web: Any) -> None:
    pause(desk, 60)
    waits, gone, asked = desk.charge(), desk.charge(), desk.charge()
    over(desk, gone)
    sends_after.undo(web, message=asked["id"], user=3)
    over(desk, asked)

    found = sends_after.offered(Message.objects.all())

    assert set(found) == {waits["id"], asked["id"]}
    assert 50 < found[waits["id"]].left <= 60 and not found[waits["id"]].asked
    assert found[asked["id"]].asked


def test_it_says_what_counts_and_what_was_set(desk: Desk) -> None:
    pause(desk, 60)
    pause(desk, 90)

    assert [(one.topic, one.words) for one in sends_after.current()] == [
        ("payment.charge", "90 seconds"),
        ("payment.refund", "Off"),
    ]
    assert [one.words for one in sends_after.history()] == ["90 seconds", "1 minute"]


def test_a_refund_that_is_taken_back_gives_its_amount_back_to_the_cap(desk: Desk, web: Any) -> None:
    invoice = desk.paid()
    pause(desk, 60, "payment.refund")
    message = desk.refund(invoice)

    sends_after.undo(web, message=message["id"], user=3)
    with desk.pool.connection() as conn:
        requests.carry_out(conn)

    assert desk.read(message)["state"] == "cancelled"
    assert desk.refund_status(message) == "withdrawn"
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0
