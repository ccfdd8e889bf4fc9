"""A destination that turns everybody away is left alone, then tried by one message; nobody pays for it with an attempt."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from outbox import breakers, leases
from outbox.outcomes import Outcome
from tests.outbox.desk import Desk

PARKED = """
INSERT INTO public.outbox_destination (name, parked_until, parked_because, refusals)
VALUES ('stripe', now() + %s, '401 refused', 3)
"""


@pytest.fixture
def other(connect: Any) -> Any:
    """Return a second connection as the outbox login."""
    return connect("outbox")


def gate(desk: Desk) -> dict[str, Any]:
    query = "SELECT *, extract(epoch FROM parked_until - now())::float AS seconds FROM public.outbox_destination"
    return desk.one(query)


def open_at_once(desk: Desk) -> None:
    desk.owner.execute("UPDATE public.outbox_destination SET parked_until = now() - interval '1 s'")


def test_it_sends_nothing_more_to_a_provider_that_does_not_know_us(desk: Desk, settings: Any) -> None:
    messages = [desk.charge() for _ in range(4)]
    settings.STRIPE_API_KEY = "sk_wrong"

    assert desk.deliver() is False

    assert [desk.read(message)["state"] for message in messages] == ["ready"] * 4
    assert [(desk.read(m)["attempts"], desk.read(m)["spared"]) for m in messages] == [(0, 1), (0, 0), (0, 0), (0, 0)]
    assert (gate(desk)["parked_because"], gate(desk)["refusals"]) == ("401 refused", 1)
    assert 7 <= gate(desk)["seconds"] <= 15


def test_it_waits_longer_each_time_that_one_message_tries(desk: Desk, settings: Any) -> None:
    messages = [desk.charge() for _ in range(3)]
    settings.STRIPE_API_KEY = "sk_wrong"
    waits = []
    for _ in range(4):
        desk.deliver()
        waits.append(gate(desk)["seconds"])
        open_at_once(desk)

    assert [7 <= waits[0] <= 15, 15 <= waits[1] <= 30, 29 <= waits[2] <= 60, 59 <= waits[3] <= 120] == [True] * 4
    tried = [len(desk.deliveries(message)) for message in messages]
    assert (sum(tried), max(tried)) == (4, 2)  # each time another message, while there are others
    settings.STRIPE_API_KEY = "sk_test_outbox"
    desk.owner.execute("UPDATE public.outbox_message SET next_attempt_at = now()")
    desk.deliver()
    assert (gate(desk)["parked_until"], gate(desk)["parked_because"], gate(desk)["refusals"]) == (None, None, 0)
    assert [desk.read(message)["state"] for message in messages] == ["succeeded"] * 3


def test_it_waits_as_long_as_it_is_told_and_uses_up_no_attempt(desk: Desk) -> None:
    first, second = desk.charge(), desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1")
    desk.provider.fault("before", "429", path="/v1/payment_intents", seconds=40)

    desk.deliver()

    assert [(desk.read(m)["state"], desk.read(m)["attempts"]) for m in (first, second)] == [("ready", 0), ("ready", 0)]
    assert gate(desk)["parked_because"].startswith("429")
    assert 39 <= gate(desk)["seconds"] <= 40
    open_at_once(desk)
    desk.deliver()
    assert [desk.read(m)["state"] for m in (first, second)] == ["succeeded", "succeeded"]


def test_a_storm_of_429_kills_no_message(desk: Desk) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 2")
    desk.provider.fault("before", "429", path="/v1/payment_intents", count=6)
    for _ in range(6):
        desk.due(message)
        desk.deliver()

    after = desk.read(message)
    assert (after["state"], after["attempts"], after["spared"], after["first_sent_at"]) == ("ready", 0, 6, None)
    desk.due(message)
    desk.deliver()
    assert (desk.read(message)["state"], desk.provider.movements(message["uid"])) == ("succeeded", [48_000])


def test_a_lock_that_took_too_long_parks_nobody(desk: Desk) -> None:
    first, second = desk.charge(), desk.charge()
    desk.provider.fault("before", "lock_timeout", path="/v1/payment_intents")

    desk.deliver()

    assert desk.read(second)["state"] == "succeeded"
    locked = desk.read(first)  # sent again by now, where chance let it wait for next to nothing
    assert (locked["spared"], locked["attempts"]) == (1, int(locked["state"] == "succeeded"))
    assert desk.owner.execute("SELECT 1 FROM public.outbox_destination").fetchone() is None


def test_it_parks_when_a_look_up_is_refused(desk: Desk, settings: Any) -> None:
    message = desk.charge()
    desk.put(message, "uncertain")
    settings.STRIPE_API_KEY = "sk_wrong"

    desk.deliver()

    assert (desk.read(message)["state"], desk.read(message)["attempts"]) == ("uncertain", 0)
    assert gate(desk)["parked_because"].startswith("401")


def test_one_of_several_workers_tries(desk: Desk, outbox: Any, other: Any) -> None:
    for _ in range(3):
        desk.charge()
    desk.owner.execute(PARKED, ("-1 s",))

    with outbox.transaction():
        assert [message["probing"] for message in leases.claim_some(outbox, owner="one", limit=8)] == [True]
        assert leases.claim_some(other, owner="two", limit=8) == []
    assert leases.claim_some(other, owner="two", limit=8) == []


def test_the_next_one_tries_when_the_first_did_not_ask(desk: Desk) -> None:
    unwanted, fine = desk.charge(), desk.charge()
    desk.owner.execute(PARKED, ("-1 s",))
    desk.owner.execute("UPDATE public.outbox_message SET attempts = max_attempts WHERE id = %s", (unwanted["id"],))

    desk.deliver()

    assert [desk.read(message)["state"] for message in (unwanted, fine)] == ["dead", "succeeded"]
    assert gate(desk)["parked_until"] is None


def test_what_left_before_it_was_parked_counts_once(desk: Desk, outbox: Any) -> None:
    desk.charge(), desk.charge(), desk.charge()
    refused = Outcome(kind="park", error="401 refused", http_status=401)
    for message in leases.claim_some(outbox, owner="x", limit=3):
        breakers.heard(outbox, message=message, outcome=refused)

    assert gate(desk)["refusals"] == 1


def test_an_answer_to_what_left_before_does_not_open_it(desk: Desk, outbox: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    desk.owner.execute(PARKED, ("1 min",))

    breakers.heard(outbox, message=message, outcome=Outcome(kind="succeeded", http_status=200))

    assert gate(desk)["refusals"] == 3


def test_no_answer_keeps_it_parked(desk: Desk, outbox: Any) -> None:
    desk.charge()
    desk.owner.execute(PARKED, ("-1 s",))
    message = leases.claim(outbox, owner="x")
    assert message

    breakers.heard(outbox, message=message, outcome=Outcome(kind="retry", error="ConnectionError"))

    assert gate(desk)["seconds"] > 0
    assert leases.claim(outbox, owner="x") is None


def test_other_destinations_go_on(desk: Desk, outbox: Any) -> None:
    desk.charge()
    note = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET destination = 'email' WHERE id = %s", (note["id"],))
    desk.owner.execute(PARKED, ("1 min",))

    assert [message["id"] for message in leases.claim_some(outbox, owner="x", limit=8)] == [note["id"]]


def test_a_person_has_it_tried_at_once(desk: Desk, outbox: Any, settings: Any) -> None:
    message = desk.charge()
    desk.owner.execute(PARKED, ("10 min",))
    desk.owner.execute("UPDATE public.outbox_message SET spared = 4, next_attempt_at = now() + interval '5 min'")
    desk.owner.execute(
        "INSERT INTO public.outbox_request (destination, kind, reason, requested_by) VALUES ('stripe', 'resume', 'new key', 1)"
    )
    assert leases.claim(outbox, owner="x") is None

    assert breakers.resume(outbox) == 1
    desk.deliver()

    assert (desk.read(message)["state"], gate(desk)["parked_until"]) == ("succeeded", None)
    assert desk.one("SELECT outcome FROM public.outbox_request")["outcome"] == "tried again"
    assert breakers.resume(outbox) == 0


@pytest.mark.parametrize("ahead", ["2 h", "30 d"])
def test_a_clock_that_was_wrong_parks_nobody_for_ever(desk: Desk, outbox: Any, ahead: str) -> None:
    desk.charge()
    desk.owner.execute(PARKED, (ahead,))

    assert leases.claim(outbox, owner="x")


# -- a rate -----------------------------------------------------------------------------------


def rate(desk: Desk, *, per_minute: int, burst: int, spent: str = "0 s") -> None:
    desk.owner.execute(
        "INSERT INTO public.outbox_destination (name, rate, burst, spent_until) VALUES ('stripe', %s, %s, now() + %s)",
        (per_minute, burst, spent),
    )


def test_it_lets_a_burst_leave_and_then_what_the_rate_allows(desk: Desk, outbox: Any) -> None:
    for _ in range(6):
        desk.charge()
    rate(desk, per_minute=1, burst=3)

    assert len(leases.claim_some(outbox, owner="x", limit=2)) == 2
    assert len(leases.claim_some(outbox, owner="x", limit=8)) == 1
    assert leases.claim_some(outbox, owner="x", limit=8) == []
    assert 55 <= (breakers.opens_in(outbox) or 0) <= 60

    desk.owner.execute("UPDATE public.outbox_destination SET spent_until = spent_until - interval '2 min'")
    assert len(leases.claim_some(outbox, owner="x", limit=8)) == 2


def test_a_clock_that_was_wrong_empties_no_bucket_for_ever(desk: Desk, outbox: Any) -> None:
    desk.charge()
    rate(desk, per_minute=60, burst=2, spent="1 d")

    assert leases.claim(outbox, owner="x")
    assert gate(desk)["spent_until"] < desk.one("SELECT now() + interval '1 min' AS at")["at"]


def test_it_says_when_there_is_room_only_for_what_is_due(desk: Desk, outbox: Any) -> None:
    desk.owner.execute(PARKED, ("10 s",))
    assert breakers.opens_in(outbox) is None

    message = desk.charge()
    assert 9 <= (breakers.opens_in(outbox) or 0) <= 10
    desk.owner.execute("UPDATE public.outbox_message SET payload = %s, blocked = true", (Jsonb(message["payload"]),))
    assert breakers.opens_in(outbox) is None
