"""A worker that is killed anywhere: the next one finishes the message, and money moves once."""

import pytest

from outbox import leases
from tests.outbox import crashing
from tests.outbox.desk import Desk
from tests.waiting import until

CONFIRM = "/v1/payment_intents/[^/]+/confirm"
POINTS = [
    "send.claimed:1",
    "send.begun:1",
    "send.answered:1",
    "send.advanced:1",
    "send.begun:2",
    "send.answered:2",
    "send.settling:1",
    "send.settled:1",
]


def rescue(desk: Desk, message: dict[str, object]) -> None:
    """Let the lease of the killed worker run out, and do what the next one does."""
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)
    desk.deliver_all(message)


@pytest.mark.parametrize("fault", POINTS)
def test_it_charges_once_whenever_its_worker_is_killed(desk: Desk, fault: str) -> None:
    message = desk.charge()
    assert crashing.end(crashing.start(desk.provider, fault=f"{fault}:kill")) == crashing.KILLED

    rescue(desk, message)

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert len(desk.provider.objects("payment_intent", message["uid"])) == 1


@pytest.mark.parametrize("fault", ["send.begun:1", "send.answered:1", "send.settling:1"])
def test_it_refunds_once_whenever_its_worker_is_killed(desk: Desk, fault: str) -> None:
    message = desk.refund(desk.paid())
    assert crashing.end(crashing.start(desk.provider, fault=f"{fault}:kill")) == crashing.KILLED

    rescue(desk, message)

    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_charges_once_when_its_worker_is_killed_in_the_middle_of_a_call(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("during", "sleep", path=CONFIRM, seconds=2)
    worker = crashing.start(desk.provider)
    until(lambda: desk.read(message)["step"] == 1 and desk.read(message)["sending_at"], seconds=20)
    worker.kill()
    assert crashing.end(worker) == crashing.KILLED

    rescue(desk, message)  # while the provider may still be busy with the first call
    until(lambda: desk.provider.movements(message["uid"]), seconds=10)
    desk.deliver_all(message)

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_shares_the_work_between_two_workers(desk: Desk) -> None:
    charges = [desk.charge() for _ in range(8)]
    workers = [crashing.start(desk.provider) for _ in range(2)]
    assert [crashing.end(worker) for worker in workers] == [0, 0]

    assert {desk.read(message)["state"] for message in charges} == {"succeeded"}
    assert [desk.provider.movements(message["uid"]) for message in charges] == [[48_000]] * 8
