"""Asking the same of many messages: what would come of it first, then the requests; and destinations that are parked."""

import re
from typing import Any

import pytest
from django.test import Client

from outbox import bulk, requests, sends_after
from tests.outbox.desk import Desk

REASON = "The provider is back."


def text_of(response: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def wishes(desk: Desk) -> list[tuple[Any, ...]]:
    return desk.owner.execute("SELECT message_id, kind, reason FROM public.outbox_request ORDER BY message_id").fetchall()


def put(desk: Desk, *states: str) -> list[int]:
    """Return new messages, the oldest first, each in a state."""
    made = []
    for state in states:
        message = desk.charge()
        desk.put(message, state)
        made.append(int(message["id"]))
    return made


def dry(admin: Client, kind: str, *messages: Any, **more: str) -> Any:
    return admin.get("/outbox/several/", {"kind": kind, "message": messages, **more})


# -- several messages ----------------------------------------------------------------------------


def test_it_says_first_what_would_come_of_it(desk: Desk, admin: Client) -> None:
    dead, ready, done = put(desk, "dead", "ready", "succeeded")

    said = text_of(dry(admin, "replay", dead, ready, done))

    assert "Try again: 1 of 3 messages" in said
    assert "It is looked up at the provider first, and sent only if nothing of it is there." in said
    assert said.count("Left alone. It does not need a person.") == 2
    assert wishes(desk) == []


def test_it_asks_of_those_that_allow_it(desk: Desk, admin: Client) -> None:
    first, second, done = put(desk, "dead", "dead", "succeeded")

    response = admin.post("/outbox/several/", {"kind": "replay", "message": [first, second, done], "reason": REASON}, follow=True)

    assert "Asked to try 2 messages again." in text_of(response)
    assert "1 no longer allowed it: nothing was asked of it." in text_of(response)
    assert wishes(desk) == [(first, "replay", REASON), (second, "replay", REASON)]
    with desk.pool.connection() as conn:
        assert requests.carry_out(conn) == 2


def test_it_asks_nothing_without_a_reason(desk: Desk, admin: Client) -> None:
    (dead,) = put(desk, "dead")

    response = admin.post("/outbox/several/", {"kind": "replay", "message": [dead], "reason": " "})

    assert response.status_code == 422
    assert "Nothing was asked. Say why" in text_of(response)
    assert "Try again: 1 of 1 message" in text_of(response)
    assert wishes(desk) == []


def test_it_asks_once(desk: Desk, admin: Client) -> None:
    (dead,) = put(desk, "dead")
    for _ in range(2):
        response = admin.post("/outbox/several/", {"kind": "replay", "message": [dead], "reason": REASON}, follow=True)

    assert "Nothing was asked. 1 no longer allowed it" in text_of(response)
    assert "Left alone. Somebody has asked for something that is not done yet." in text_of(dry(admin, "replay", dead))
    assert len(wishes(desk)) == 1


def test_it_takes_what_the_filters_leave(desk: Desk, admin: Client) -> None:
    dead, _, other = put(desk, "dead", "uncertain", "dead")

    said = text_of(dry(admin, "replay", every="on", state="dead"))

    assert "Try again: 2 of 2 messages" in said
    assert f"M-{dead}" in said and f"M-{other}" in said


def test_it_takes_the_newest_when_there_are_too_many(desk: Desk, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MOST", 2)
    oldest, *_ = put(desk, "dead", "dead", "dead")

    said = text_of(dry(admin, "replay", every="on"))

    assert "There are more than 2; these are the newest." in said
    assert f"M-{oldest} " not in said


@pytest.mark.parametrize(
    ("kind", "state", "says"),
    [
        ("cancel", "ready", "It is never sent, and the books are as before it was queued."),
        ("cancel", "succeeded", "Left alone. It was sent."),
        ("cancel", "cancelled", "Left alone. It has ended."),
        ("look_up", "uncertain", "The provider is asked what it has; what is new there is taken over."),
        ("look_up", "ready", "Left alone. Nothing of it ever left."),
    ],
)
def test_it_says_what_each_state_allows(desk: Desk, admin: Client, kind: str, state: str, says: str) -> None:
    (message,) = put(desk, state)

    assert says in text_of(dry(admin, kind, message))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("kind=replay", "Select the messages first."),
        ("kind=refund&message=1", "Say what should be asked."),
        ("message=1", "Say what should be asked."),
        ("kind=replay&message=x", "There is no such message."),
        ("kind=replay&message=" + "9" * 30, "There is no such message."),
        ("kind=replay&" + "&".join(f"message={number}" for number in range(501)), "At most 500 messages at once."),
    ],
)
def test_it_refuses_what_makes_no_sense(desk: Desk, admin: Client, query: str, says: str) -> None:
    response = admin.get(f"/outbox/several/?{query}")

    assert response.status_code == 422
    assert f"Nothing was asked. {says}" in text_of(response)
    assert admin.post("/outbox/several/", {"kind": "x", "reason": REASON}).status_code == 422


def test_it_finds_no_message_that_is_not_there(desk: Desk, admin: Client) -> None:
    assert "No message was chosen" in text_of(dry(admin, "replay", 4711))


# -- one message ---------------------------------------------------------------------------------


def test_it_looks_a_message_up_and_shows_what_the_provider_has(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.deliver()
    assert "Nothing of it ever left" not in text_of(admin.get(f"/outbox/{message['id']}/"))

    response = admin.post(f"/outbox/{message['id']}/look-up/", {"reason": "The customer asks."}, follow=True)
    with desk.pool.connection() as conn:
        requests.carry_out(conn)

    assert "Asked to look it up." in text_of(response)
    page = admin.get(f"/outbox/{message['id']}/")
    said = text_of(page)
    assert "Request beside the provider’s object" in said
    assert re.search(r"Amount 48000 48000 ", said) and re.search(r"Our id (\S+) \1 ", said)
    assert "Status — succeeded" in said
    assert 'class="clash"' not in page.content.decode()
    assert "asked to look it up" in said


def test_it_marks_where_the_provider_shows_something_else(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.owner.execute("""UPDATE public.outbox_message SET seen = '{"id": "pi_1", "amount": 47000, "currency": "eur"}'""")

    page = admin.get(f"/outbox/{message['id']}/").content.decode()

    assert page.count('class="clash"') == 1 and "<code>47000</code>" in page


def test_it_is_undone_there_while_there_is_time(desk: Desk, admin: Client, web: Any) -> None:
    sends_after.set_pause(web, topic="payment.charge", seconds=60, reason="Look twice.", user=1)
    first, second = desk.charge(), desk.charge()
    for path in ("/outbox/", f"/outbox/{first['id']}/"):
        assert f"/outbox/{first['id']}/undo/" in admin.get(path).content.decode()

    response = admin.post(f"/outbox/{first['id']}/undo/", follow=True)

    assert "Taken back." in text_of(response) and "A person asked to withdraw it." in text_of(response)
    assert "being withdrawn" in text_of(admin.get("/outbox/"))
    desk.owner.execute("UPDATE public.outbox_message SET undo_until = now() WHERE id = %s", (second["id"],))
    late = admin.post(f"/outbox/{second['id']}/undo/")
    assert late.status_code == 409
    assert "It is too late to undo this: the time for it is over. Nothing was changed." in text_of(late)
    assert [row[:2] for row in wishes(desk)] == [(first["id"], "cancel")]


# -- destinations --------------------------------------------------------------------------------


def park(desk: Desk, because: str = "401 invalid_api_key") -> None:
    desk.owner.execute(
        "INSERT INTO public.outbox_destination (name, parked_until, parked_because, refusals)"
        " VALUES ('stripe', now() + interval '5 min', %s, 3) ON CONFLICT (name) DO UPDATE"
        " SET parked_until = excluded.parked_until, parked_because = excluded.parked_because, refusals = excluded.refusals",
        (because,),
    )


def test_it_says_that_destinations_are_open(desk: Desk, admin: Client) -> None:
    said = text_of(admin.get("/outbox/"))

    assert re.search(r"Stripe Open 0 due · ", said), said[:800]
    assert "Try now" not in said


@pytest.mark.parametrize(
    ("because", "says"),
    [
        ("401 invalid_api_key", "It refuses our key (401 invalid_api_key)."),
        ("429 rate_limit", "It asked us to send less (429 rate_limit)."),
    ],
)
def test_it_says_why_a_destination_is_parked_and_asks_to_try_it(desk: Desk, admin: Client, because: str, says: str) -> None:
    desk.charge()
    park(desk, because)

    said = text_of(admin.get("/outbox/"))
    response = admin.post("/outbox/destinations/stripe/resume/", {"reason": "New key."}, follow=True)

    assert f"Parked {says} 3 refusals in a row." in said and "1 due" in said and "Try now" in said
    assert "Asked to try stripe now." in text_of(response) and "Asked to try it" in text_of(response)
    assert desk.one("SELECT destination, kind, reason FROM public.outbox_request") == {
        "destination": "stripe",
        "kind": "resume",
        "reason": "New key.",
    }
    assert admin.post("/outbox/destinations/stripe/resume/", {"reason": "Again."}).status_code == 409


def test_it_wants_a_reason_and_a_destination_that_is_parked(desk: Desk, admin: Client) -> None:
    assert admin.post("/outbox/destinations/nowhere/resume/", {"reason": "x"}).status_code == 404
    park(desk)
    response = admin.post("/outbox/destinations/stripe/resume/", {"reason": ""})
    assert response.status_code == 422
    assert "Say why: the reason is kept with the message." in text_of(response)
    desk.owner.execute("UPDATE public.outbox_destination SET parked_until = NULL")
    assert admin.post("/outbox/destinations/stripe/resume/", {"reason": "x"}).status_code == 409


def test_it_counts_lost_leases(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    for error, stale, hours in (("the worker was lost", False, 1), (None, True, 2), (None, True, 30), (None, False, 1)):
        desk.owner.execute(
            "INSERT INTO public.outbox_delivery (started_at, message_id, step, outcome, stale, error, duration_ms)"
            " VALUES (now() - make_interval(hours => %s), %s, 'confirm', 'uncertain', %s, %s, 1)",
            (hours, message["id"], stale, error),
        )

    assert "Leases lost 2 in 24 hours" in text_of(admin.get("/outbox/"))
