"""What waits behind an older message: nobody looks at it, whoever ends the older one lets it go, a sweep finds what leaked."""

from typing import Any

from outbox import leases, messages
from tests.billing import makers
from tests.outbox.desk import Desk


def blocked(desk: Desk, message: dict[str, Any]) -> bool:
    return bool(desk.read(message)["blocked"])


def test_it_lets_the_next_one_go_when_one_is_finished(desk: Desk, outbox: Any) -> None:
    first, second = desk.refund_pair(desk.paid())
    desk.owner.execute("UPDATE public.billing_refund SET status = 'confirmed'")
    third = desk.refund(first["payload"]["invoice_id"])
    assert [blocked(desk, message) for message in (first, second, third)] == [False, True, True]

    desk.put(first, "dead")
    assert [blocked(desk, message) for message in (second, third)] == [True, True]
    desk.put(first, "rejected")
    assert [blocked(desk, message) for message in (second, third)] == [False, True]
    desk.put(second, "cancelled")
    assert blocked(desk, third) is False


def test_it_lets_nobody_go_when_a_waiting_one_is_withdrawn(desk: Desk) -> None:
    first, second = desk.refund_pair(desk.paid())
    desk.owner.execute("UPDATE public.billing_refund SET status = 'confirmed'")
    third = desk.refund(first["payload"]["invoice_id"])

    desk.put(second, "cancelled")

    assert [desk.read(first)["state"], blocked(desk, third)] == ["ready", True]


def test_it_never_looks_at_what_waits_and_believes_no_flag(desk: Desk, outbox: Any) -> None:
    first, second = desk.refund_pair(desk.paid())
    desk.put(first, "rejected")
    desk.owner.execute("UPDATE public.outbox_message SET blocked = true WHERE id = %s", (second["id"],))  # a flag that leaked
    assert leases.claim(outbox, owner="x") is None

    desk.put(first, "uncertain")
    desk.owner.execute("UPDATE public.outbox_message SET blocked = false, next_attempt_at = now() + interval '1 h'")
    desk.due(second)
    assert leases.claim(outbox, owner="x") is None  # not blocked, and yet an older one is unfinished


def test_it_finds_flags_that_leaked(desk: Desk, outbox: Any) -> None:
    invoice = desk.paid()
    first, second = desk.refund_pair(invoice)
    desk.owner.execute("UPDATE public.outbox_message SET blocked = true WHERE state = 'ready'")

    assert leases.unblock(outbox) == [first["id"]]
    assert leases.unblock(outbox) == []
    assert blocked(desk, second)


def test_what_is_written_while_an_older_one_finishes_is_let_go_by_the_sweep(desk: Desk, agent: Any, outbox: Any) -> None:
    first = desk.charge()
    desk.put(first, "leased")
    payload = dict(first["payload"])
    with makers.about(agent, desk.customer) as conn:
        messages.enqueue(
            conn, topic="payment.charge", aggregate=first["aggregate"], dedupe_key="x", payload=payload, cause=desk.cause
        )
        desk.put(first, "rejected")  # it finds the aggregate locked, and waits for nobody

    second = desk.newest()
    assert blocked(desk, second)
    assert leases.unblock(outbox) == [second["id"]]
