"""Outbox workers that stop in the middle of a delivery and go on when another has finished it: they change nothing any more."""

from pathlib import Path
from typing import Any

import pytest

from outbox import leases
from tests.outbox import stopping
from tests.outbox.desk import Desk
from tests.waiting import until
from tests.zombies import everything

POINTS = [
    "send.claimed:1", "send.begun:1", "send.answered:1", "send.advanced:1", "send.begun:2", "send.answered:2",
]  # fmt: skip


def taken_over(desk: Desk, message: dict[str, Any]) -> None:
    """Let the lease run out and finish the message."""
    run_out(desk)
    desk.deliver_all(message)


def run_out(desk: Desk) -> None:
    """Let leases run out, which waits for what the stopped worker has locked."""
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        until(lambda: leases.rescue(conn), seconds=20, what="a rescue")


@pytest.mark.parametrize("fault", POINTS)
def test_it_changes_nothing_wherever_it_stopped(desk: Desk, superuser: Any, tmp_path: Path, fault: str) -> None:
    message = desk.charge()
    with stopping.worker(desk.provider, fault=fault, log=tmp_path / "log") as zombie:
        taken_over(desk, message)
        assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
        before = everything(superuser)
        zombie.go_on()

    assert everything(superuser) == before
    assert desk.provider.movements(message["uid"]) == [48_000]
    assert len(desk.provider.objects("payment_intent", message["uid"])) == 1
    assert zombie.process.exitcode == 0
    assert zombie.logged("outbox.lease.lost")


@pytest.mark.parametrize(
    ("fault", "refused"), [("send.answered:3", "outbox.lease.lost"), ("send.settling:1", "outbox.message.left")]
)
def test_it_changes_nothing_of_several_that_it_had_in_hand(
    desk: Desk, superuser: Any, tmp_path: Path, fault: str, refused: str
) -> None:
    messages = [desk.charge() for _ in range(3)]
    with stopping.worker(desk.provider, fault=fault, log=tmp_path / "log", hands=3) as zombie:
        run_out(desk)
        for message in messages:
            desk.deliver_all(message)
        assert [(desk.read(message)["state"], desk.invoice(message)) for message in messages] == [("succeeded", "paid")] * 3
        before = everything(superuser)
        assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert [desk.provider.movements(message["uid"]) for message in messages] == [[48_000]] * 3
    # In the middle of settling: the database has closed its connection.
    assert zombie.logged(refused)


@pytest.mark.parametrize("fault", ["send.answered:1", "send.answered:2"])
def test_it_changes_nothing_of_what_another_has_in_hand(desk: Desk, superuser: Any, tmp_path: Path, fault: str) -> None:
    message = desk.charge()
    with stopping.worker(desk.provider, fault=fault, log=tmp_path / "log") as zombie:
        run_out(desk)
        desk.due(message)
        claimed = desk.claim()
        assert claimed
        before = everything(superuser)
        assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert zombie.logged("outbox.lease.lost")
    desk.work(claimed)
    assert (desk.read(message)["state"], desk.provider.movements(message["uid"])) == ("succeeded", [48_000])


def test_it_keeps_the_answer_that_came_too_late_as_evidence(desk: Desk, tmp_path: Path) -> None:
    message = desk.charge()
    with stopping.worker(desk.provider, fault="send.answered:2", log=tmp_path / "log") as zombie:
        token = desk.read(message)["lease_token"]
        taken_over(desk, message)
        assert zombie.go_on() == 0

    assert desk.deliveries(message)[-2:] == [("lookup", "succeeded"), ("confirm", "succeeded, stale")]
    assert desk.one("SELECT lease_token FROM public.outbox_delivery WHERE stale")["lease_token"] == token
    assert [entry["token"] for entry in zombie.logged("outbox.lease.lost")] == [str(token)]


def test_it_is_not_believed_when_the_provider_has_said_something_else_since(desk: Desk, superuser: Any, tmp_path: Path) -> None:
    """A refused charge whose worker stopped; meanwhile the message was settled as rejected and charged anew by its successor."""
    desk.card("pm_card_chargeCustomerFail")
    message = desk.charge()
    with stopping.worker(desk.provider, fault="send.answered:2", log=tmp_path / "log") as zombie:
        taken_over(desk, message)
        assert (desk.read(message)["state"], desk.invoice(message)) == ("rejected", "charge_failed")
        desk.card("pm_card_visa")
        again = desk.charge_again(message["payload"]["invoice_id"])
        desk.deliver_all(again)
        assert (desk.read(again)["state"], desk.invoice(again)) == ("succeeded", "paid")
        before = everything(superuser)
        assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert desk.deliveries(message)[-1] == ("confirm", "rejected, stale")
    assert desk.provider.movements(message["uid"]) == []
    assert desk.provider.movements(again["uid"]) == [48_000]


def test_it_refunds_once_when_its_worker_goes_on_after_another_has_finished(desk: Desk, superuser: Any, tmp_path: Path) -> None:
    message = desk.refund(desk.paid())
    with stopping.worker(desk.provider, fault="send.begun:1", log=tmp_path / "log") as zombie:
        taken_over(desk, message)
        assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
        before = everything(superuser)
        assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert desk.provider.movements(message["uid"]) == [-10_000]
    assert len(desk.provider.objects("refund", message["uid"])) == 1
