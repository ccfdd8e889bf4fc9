"""A worker that has several messages in hand and is killed: all come back, and money moves once."""

import pytest

from outbox import leases
from tests.outbox import crashing
from tests.outbox.desk import Desk, Row

HANDS = 4


def rescued(desk: Desk) -> None:
    """Let the leases of the killed worker run out."""
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)


def finished(desk: Desk, charges: list[Row]) -> None:
    """Let the next worker do the rest, and check that each charge moved its money once."""
    desk.owner.execute("UPDATE public.outbox_message SET next_attempt_at = now()")
    assert crashing.end(crashing.start(desk.provider, hands=HANDS)) == 0
    assert [(desk.read(message)["state"], desk.invoice(message)) for message in charges] == [("succeeded", "paid")] * len(charges)
    assert [desk.provider.movements(message["uid"]) for message in charges] == [[48_000]] * len(charges)


@pytest.mark.parametrize("place", [1, 3])
def test_what_was_claimed_and_not_sent_comes_back_without_a_used_attempt(desk: Desk, place: int) -> None:
    charges = [desk.charge() for _ in range(6)]
    worker = crashing.start(desk.provider, fault=f"send.claimed:{place}:kill", hands=HANDS)
    assert crashing.end(worker) == crashing.KILLED
    assert [desk.read(message)["state"] for message in charges] == ["leased"] * HANDS + ["ready"] * 2

    rescued(desk)

    after = [desk.read(message) for message in charges]
    assert [(row["state"], row["attempts"], row["first_sent_at"]) for row in after] == [("ready", 0, None)] * 6
    finished(desk, charges)


@pytest.mark.parametrize("fault", ["send.begun:3", "send.answered:2", "send.advanced:2", "send.answered:6", "send.settling:2"])
def test_it_charges_each_once_wherever_it_was_killed(desk: Desk, fault: str) -> None:
    charges = [desk.charge() for _ in range(6)]
    assert crashing.end(crashing.start(desk.provider, fault=f"{fault}:kill", hands=HANDS)) == crashing.KILLED

    rescued(desk)

    finished(desk, charges)


def test_two_crews_share_the_work_and_keep_the_order(desk: Desk) -> None:
    refunds = desk.refund_pair(desk.paid())
    charges = [desk.charge() for _ in range(8)]
    crews = [crashing.start(desk.provider, hands=HANDS) for _ in range(2)]
    assert [crashing.end(crew) for crew in crews] == [0, 0]

    finished(desk, charges)
    assert [desk.read(message)["state"] for message in refunds] == ["succeeded", "succeeded"]
    first, second = (desk.read(message) for message in refunds)
    assert first["finished_at"] <= second["first_sent_at"]
    assert max(desk.read(message)["sends"] for message in charges) == 2
