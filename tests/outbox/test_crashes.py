"""A worker that is killed anywhere: the next one finishes the message, and money moves once."""

import pytest

from outbox import leases
from tests.outbox import crashing
from tests.outbox.desk import Desk
from tests.waiting import until

CONFIRM = "/v1/payment_intents/[^/]+/confirm"
POINTS = [
    "outbox.leases:claim:after:1",
    "outbox.leases:begin_send:after:1",
    "outbox.gateway:post:after:1",
    "outbox.leases:advance:before:1",
    "outbox.leases:advance:after:1",
    "outbox.leases:begin_send:after:2",
    "outbox.gateway:post:after:2",
    "outbox.settling:record:after:2",  # inside the settling transaction
    "outbox.handlers:settle:after:1",  # its effect is applied, nothing is committed
    "outbox.settling:settle:after:1",  # committed
]


def rescue(desk: Desk, message: dict[str, object]) -> None:
    """Let the lease of the killed worker run out, and do what the next one does."""
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)
    desk.deliver_all(message)


@pytest.mark.parametrize("point", POINTS)
def test_it_charges_once_whenever_its_worker_is_killed(desk: Desk, point: str) -> None:
    message = desk.charge()
    assert crashing.end(crashing.start(desk.provider, point=point)) == crashing.KILLED

    rescue(desk, message)

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert len(desk.provider.objects("payment_intent", message["uid"])) == 1


@pytest.mark.parametrize(
    "point",
    ["outbox.leases:begin_send:after:1", "outbox.gateway:post:after:1", "outbox.handlers:settle:after:1"],
)
def test_it_refunds_once_whenever_its_worker_is_killed(desk: Desk, point: str) -> None:
    message = desk.refund(desk.paid())
    assert crashing.end(crashing.start(desk.provider, point=point)) == crashing.KILLED

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
