"""What a settled message asks of a person, as the outbox login in its own transaction."""

from collections.abc import Callable
from typing import Any

import pytest

from escalations import lifecycle, settled
from tests.escalations.scenes import Scene


def escalations(conn: Any) -> list[Any]:
    found: list[Any] = conn.execute(
        "SELECT kind, object, state, payload FROM public.escalations_escalation WHERE object LIKE 'message:%' ORDER BY id"
    ).fetchall()
    return found


@pytest.mark.parametrize(
    ("state", "topic", "compensation", "kind"),
    [
        ("rejected", "payment.charge", False, "rejected_payment"),
        ("rejected", "payment.refund", False, "rejected_payment"),
        ("rejected", "notify.email", False, None),
        ("dead", "payment.charge", False, "unknown_outcome"),
        ("dead", "notify.email", False, "unknown_outcome"),
        ("uncertain", "payment.charge", False, None),
        ("uncertain", "payment.charge", True, "unknown_outcome"),
        ("succeeded", "payment.charge", False, None),
        ("accepted", "payment.charge", False, None),
        ("cancelled", "payment.charge", False, None),
    ],
)
def test_it_knows_which_end_needs_a_person(state: str, topic: str, compensation: bool, kind: str | None) -> None:
    assert settled.kind_of(state=state, topic=topic, compensation_needed=compensation) == kind


def test_a_refused_payment_is_put_to_a_person_once(scene: Callable[..., Scene], outbox: Any, web: Any, reviewer: Any) -> None:
    made = scene()
    escalation = made.payment()
    message = int(escalations(web)[0][1].partition(":")[2])
    settled.open_if_needed(outbox, message={"id": message}, outcome=None)
    lifecycle.decide(web, escalation=escalation, kind="close", text="The customer was called.", user=reviewer.id)
    settled.open_if_needed(outbox, message={"id": message}, outcome=None)
    [(kind, _, state, payload)] = escalations(web)
    assert (kind, state) == ("rejected_payment", "done")  # nobody waits for it: closed at once
    assert payload["about"] == "Charge €49.00 to the card ending in 4242 for invoice 1"
    assert payload["reason"] == "The payment provider refused it: insufficient funds. No money moved."
    assert (payload["amount_minor"], payload["currency"], payload["message_id"]) == (4900, "EUR", message)


def test_a_dead_message_that_dies_again_is_asked_about_again(
    scene: Callable[..., Scene], outbox: Any, web: Any, reviewer: Any
) -> None:
    escalation = scene().payment(state="dead")
    message = int(escalations(web)[0][1].partition(":")[2])
    lifecycle.decide(web, escalation=escalation, kind="close", text="", user=reviewer.id)
    settled.open_if_needed(outbox, message={"id": message}, outcome=None)
    settled.open_if_needed(outbox, message={"id": message}, outcome=None)
    assert [row[2] for row in escalations(web)] == ["done", "open"]


def test_it_is_rolled_back_with_the_settling(scene: Callable[..., Scene], outbox: Any, owner: Any, web: Any) -> None:
    made = scene()
    made.payment()
    message = int(escalations(web)[0][1].partition(":")[2])
    owner.execute("UPDATE public.escalations_escalation SET state = 'done'")
    owner.execute("UPDATE public.outbox_message SET state = 'dead', finished_at = NULL")
    outbox.execute("BEGIN")
    settled.open_if_needed(outbox, message={"id": message}, outcome=None)
    outbox.execute("ROLLBACK")
    assert len(escalations(web)) == 1


def test_it_names_who_asked(scene: Callable[..., Scene], web: Any) -> None:
    made = scene()
    escalation = made.payment()
    found = web.execute(
        "SELECT requested_by, subject, thread FROM public.escalations_escalation WHERE id = %s", (escalation,)
    ).fetchone()
    assert found == (made.staff.id, made.customer, made.thread)
