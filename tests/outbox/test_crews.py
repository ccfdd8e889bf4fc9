"""Delivering several messages at once, in one process."""

import threading
from typing import Any

import pytest

from outbox import crews
from tests.outbox.desk import Desk
from tests.waiting import until

CONFIRM = "/v1/payment_intents/[^/]+/confirm"


@pytest.fixture
def crew() -> crews.Crew:
    """Return a crew of four hands."""
    return crews.Crew(hands=4)


def always() -> bool:
    return True


def states(desk: Desk, messages: list[dict[str, Any]]) -> set[str]:
    return {desk.read(message)["state"] for message in messages}


def test_it_delivers_all_that_is_due(desk: Desk, crew: crews.Crew) -> None:
    messages, rung = [desk.charge() for _ in range(10)], list[int]()

    crew.work(desk.pool, go_on=always, wake=lambda: rung.append(1))

    assert states(desk, messages) == {"succeeded"}
    assert [desk.provider.movements(message["uid"]) for message in messages] == [[48_000]] * 10
    assert [desk.read(message)["attempts"] for message in messages] == [1] * 10
    assert rung == [1]


def test_it_sends_several_at_once(desk: Desk, crew: crews.Crew) -> None:
    messages = [desk.charge() for _ in range(4)]
    desk.provider.fault("during", "sleep", path=CONFIRM, seconds=1, count=4)
    worker = threading.Thread(target=crew.work, args=(desk.pool,), kwargs={"go_on": always, "wake": always})
    worker.start()
    until(lambda: all(desk.read(message)["step"] == 1 and desk.read(message)["sending_at"] for message in messages))
    worker.join()

    assert states(desk, messages) == {"succeeded"}


def test_it_looks_again_for_whoever_rings_meanwhile(desk: Desk, crew: crews.Crew) -> None:
    first = desk.charge()
    desk.provider.fault("during", "sleep", path=CONFIRM, seconds=1)
    worker = threading.Thread(target=crew.work, args=(desk.pool,), kwargs={"go_on": always, "wake": always})
    worker.start()
    until(lambda: desk.read(first)["step"] == 1 and desk.read(first)["sending_at"])

    second = desk.charge()
    crew.work(desk.pool, go_on=always, wake=always)

    until(lambda: desk.read(second)["state"] == "succeeded", seconds=0.9, what="the second while the first is in hand")
    assert desk.read(first)["state"] == "leased"
    worker.join()


def test_a_destination_that_hangs_keeps_no_other_waiting(desk: Desk, crew: crews.Crew) -> None:
    crew._busy["email"] = 4
    notes, charges = [desk.charge(), desk.charge()], [desk.charge() for _ in range(3)]
    desk.owner.execute("UPDATE public.outbox_message SET destination = 'email' WHERE id = ANY(%s)", ([n["id"] for n in notes],))
    worker = threading.Thread(target=crew.work, args=(desk.pool,), kwargs={"go_on": always, "wake": always})
    worker.start()

    until(lambda: states(desk, charges) == {"succeeded"}, seconds=5)

    assert states(desk, notes) == {"ready"}
    assert {desk.read(message)["attempts"] for message in notes} == {0}
    desk.owner.execute("DELETE FROM public.outbox_message WHERE destination = 'email'")
    crew._busy["email"] = 0
    crew._changed.set()
    worker.join()


def test_it_takes_up_nothing_when_it_is_told_to_stop(desk: Desk, crew: crews.Crew) -> None:
    message = desk.charge()

    crew.work(desk.pool, go_on=lambda: False, wake=always)

    assert desk.read(message)["state"] == "ready"


def test_it_finishes_what_it_has_in_hand(desk: Desk, crew: crews.Crew) -> None:
    first, second, answers = desk.charge(), desk.charge(), iter([True])
    desk.owner.execute("UPDATE public.outbox_message SET aggregate = 'x'")  # one after the other

    crew.work(desk.pool, go_on=lambda: next(answers, False), wake=always)

    assert (desk.read(first)["state"], desk.read(second)["state"]) == ("succeeded", "ready")
    assert desk.read(second)["attempts"] == 0


def test_it_goes_on_after_a_message_that_nobody_foresaw(desk: Desk, crew: crews.Crew) -> None:
    broken, fine = desk.charge(), desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET steps = '[]' WHERE id = %s", (broken["id"],))

    crew.work(desk.pool, go_on=always, wake=always)

    assert (desk.read(broken)["state"], desk.read(fine)["state"]) == ("leased", "succeeded")


def test_it_waits_for_a_destination_that_opens_soon(desk: Desk, crew: crews.Crew) -> None:
    message = desk.charge()
    desk.owner.execute(
        "INSERT INTO public.outbox_destination (name, parked_until, parked_because, refusals)"
        " VALUES ('stripe', now() + interval '0.5 s', '429', 1)"
    )

    crew.work(desk.pool, go_on=always, wake=always)

    assert desk.read(message)["state"] == "succeeded"
    assert desk.one("SELECT * FROM public.outbox_destination")["parked_until"] is None
