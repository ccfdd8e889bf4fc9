"""An event about a second object of one message: money may have moved twice, so that a scan asks the provider at once."""

from typing import Any

import pytest

from escalations.reconciling import scanning
from outbox import webhooks
from outbox.outcomes import Answer
from tests.outbox.desk import Desk
from tests.outbox.events import stored
from tests.outbox.test_reconciling import ours
from tests.outbox.test_sweeps import again

EARLIER = "UPDATE public.escalations_scan SET asked_at = asked_at - interval '1 min'"


def nothing(path: str, params: Any) -> Answer:
    """Answer as a provider that has nothing new."""
    return Answer(status=200, body={"data": [], "has_more": False})


def told_of(desk: Desk, message: dict[str, Any], object_id: str, status: Any) -> str:
    """Return what becomes of an event about another object of the message."""
    about = {"id": object_id, "metadata": {"backstop_uid": str(message["uid"])}, "status": status}
    stored(desk.owner, kind="payment_intent.succeeded", about=about, event_id="evt_other")
    webhooks.process_due(desk.pool, go_on=lambda: True)
    return str(desk.one("SELECT outcome FROM public.outbox_webhook_event")["outcome"])


def test_a_person_is_asked_about_one_that_moved_money_without_waiting_for_the_hour(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.deliver()
    orphan = again(desk, message, confirm="true")
    assert [scanning.work(outbox, get=nothing) for _ in range(2)] == [1, 0]
    outbox.execute(EARLIER)

    assert told_of(desk, message, orphan["id"], "succeeded") == "another object: succeeded"
    assert [scanning.work(outbox, get=ours(message)) for _ in range(2)] == [1, 0]

    asked = "SELECT payload ->> 'reason' FROM public.escalations_escalation"
    said = f"Two objects at Stripe carry the id of message M-{message['id']}: its money may have moved twice."
    assert desk.owner.execute(asked).fetchall() == [(said,)]
    outbox.execute(EARLIER)
    assert scanning.work(outbox, get=nothing) == 0  # the news is known


@pytest.mark.parametrize("status", ["canceled", "failed", None, 7, [], "a b"])
def test_nobody_is_asked_about_one_that_has_ended(desk: Desk, outbox: Any, status: Any) -> None:
    message = desk.charge()
    desk.deliver()
    scanning.work(outbox, get=nothing)
    outbox.execute(EARLIER)

    assert told_of(desk, message, "pi_orphan", status) == "another object"
    assert scanning.work(outbox, get=nothing) == 0
