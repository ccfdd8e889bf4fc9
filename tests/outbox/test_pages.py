"""The outbox as admins see it, and what they may ask."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from outbox import requests
from outbox.models import Message
from tests.outbox.desk import Desk


def figure(text: str, label: str) -> str:
    """Return what the page says under a figure's label."""
    found = re.search(rf"<h2>{label}</h2>\s*<p class=\"v\">(?:<a [^>]*>)?([^<]*)", text)
    assert found, label
    return found[1]


def test_it_lists_messages_with_their_state_in_words(desk: Desk, admin: Client) -> None:
    done = desk.charge()
    desk.deliver()
    desk.charge()

    text = admin.get("/outbox/").content.decode()

    assert "Charge €480.00 to the card ending in 4242" in text
    assert ">Confirmed<" in text and ">Queued<" in text
    assert desk.read(done)["provider_id"] in text
    assert "Sample Cycles BV" in text
    assert figure(text, "Queued") == "1"


def test_it_says_how_many_need_a_look(desk: Desk, admin: Client) -> None:
    for state in ("dead", "uncertain", "accepted", "uncertain"):
        desk.put(desk.charge(), state)

    text = admin.get("/outbox/").content.decode()

    assert [figure(text, label) for label in ("Uncertain", "Need a person", "Sent, not final")] == ["2", "1", "1"]
    assert figure(text, "Oldest due") == "0 s"
    assert "oldest queued 0 s ago" in text


def test_it_asks_again_for_what_is_shown(desk: Desk, admin: Client) -> None:
    message = desk.charge()

    text = admin.get("/outbox/?state=ready&q=M-1").content.decode()

    asks = re.search(r'id="live" hx-get="([^"]*)"', text)
    assert asks and asks[1] == "/outbox/?state=ready&amp;q=M-1"
    assert f'id="m-{message["id"]}"' in text  # a line is told from another, whatever comes above it


def test_it_is_empty_at_first(admin: Client) -> None:
    assert "Nothing yet" in admin.get("/outbox/").content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "state=dead",
        "topic=payment.refund",
        "customer=Sample",
        "q=M-{id}",
        "q={uid}",
        "q={dedupe_key}",
        "q=insufficient_fu",
    ],
)
def test_it_filters(desk: Desk, admin: Client, query: str) -> None:
    other = desk.charge()
    desk.deliver()
    message = desk.refund(other["payload"]["invoice_id"])
    desk.put(message, "dead")
    desk.owner.execute("UPDATE public.outbox_message SET refusal = 'insufficient_funds' WHERE id = %s", (message["id"],))

    text = admin.get("/outbox/?" + query.format(**message)).content.decode()

    assert f"M-{message['id']}</a>" in text
    assert (f"M-{other['id']}</a>" in text) == query.startswith("customer")


@pytest.mark.parametrize(
    "query", ["state=nonsense", "q=M-99", "q=%00", "topic=x", "customer=nobody", "after=x~y", "q=" + "x" * 300]
)
def test_it_finds_nothing_by_nonsense(desk: Desk, admin: Client, query: str) -> None:
    desk.charge()

    response = admin.get(f"/outbox/?{query}")

    assert response.status_code == 200
    assert ("No message matches" in response.content.decode()) == (not query.startswith("after"))


def test_it_asks_the_same_number_of_questions_however_many_messages(
    desk: Desk, admin: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(6):
        desk.charge()
    with django_assert_max_num_queries(14):
        admin.get("/outbox/")


def test_it_tells_the_story_of_a_message(desk: Desk, admin: Client, web: Any) -> None:
    message = desk.charge()
    desk.provider.fault("after", "drop", path="/v1/payment_intents/[^/]+/confirm")
    desk.deliver_once()
    desk.deliver_all(message)

    text = admin.get(f"/outbox/{message['id']}/").content.decode()

    assert "Create: done; the next step follows" in text
    assert "Confirm: no usable answer, so nobody knows whether it was executed" in text
    assert "Look-up: confirmed" in text
    assert "POST /v1/payment_intents/{provider_id}/confirm" in text
    assert f"{message['uid']}:create" in text
    assert "What it changed" in text and "charge queued" in text
    assert "Known from" in text
    assert "<dt>State</dt><dd>Confirmed</dd>" in text


def test_it_marks_an_answer_that_came_too_late(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.owner.execute(
        "INSERT INTO public.outbox_delivery (message_id, step, outcome, stale, duration_ms)"
        " VALUES (%s, 'confirm', 'rejected', true, 1)",
        (message["id"],),
    )

    assert "Its lease was gone when the answer came" in admin.get(f"/outbox/{message['id']}/").content.decode()


def test_it_shows_text_of_the_provider_as_text(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET last_error = '<script>x</script>', refusal = '<b>no</b>'")

    text = admin.get(f"/outbox/{message['id']}/").content.decode()

    assert "<script>x" not in text and "<b>no" not in text


def test_it_offers_what_the_state_allows(desk: Desk, admin: Client) -> None:
    for state in Message.State.values:
        message = desk.charge()
        desk.put(message, state)

        text = admin.get(f"/outbox/{message['id']}/").content.decode()

        assert ("Withdraw M-" in text) == (state in ("ready", "leased")), state
        assert ("Try again M-" in text) == (state == "dead"), state


def test_it_records_a_request_and_rings(desk: Desk, admin: Client) -> None:
    message = desk.charge()

    response = admin.post(f"/outbox/{message['id']}/cancel/", {"reason": "the customer called"}, follow=True)

    assert "Asked to withdraw it." in response.content.decode()
    assert "A person asked to withdraw it." in response.content.decode()
    found = desk.one("SELECT * FROM public.outbox_request")
    assert (found["kind"], found["reason"], found["requested_by"]) == (
        "cancel",
        "the customer called",
        get_user_model().objects.get().pk,
    )
    with desk.pool.connection() as conn:
        requests.carry_out(conn)
    text = admin.get(f"/outbox/{message['id']}/").content.decode()
    assert "Withdrawn" in text and "admin1: asked to withdraw it" in text


def test_it_wants_a_reason(desk: Desk, admin: Client) -> None:
    message = desk.charge()

    for reason in ("", "   ", "x" * 501):
        response = admin.post(f"/outbox/{message['id']}/cancel/", {"reason": reason})

        assert response.status_code == 422
        assert "Nothing was asked." in response.content.decode()


def test_it_says_when_it_came_too_late(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.deliver()

    response = admin.post(f"/outbox/{message['id']}/cancel/", {"reason": "too late"})

    assert response.status_code == 409
    assert "This is how it stands now." in response.content.decode()


def test_it_takes_back_a_dead_message(desk: Desk, admin: Client) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET attempts = max_attempts")
    desk.deliver_once()

    admin.post(f"/outbox/{message['id']}/replay/", {"reason": "the provider is back"})
    with desk.pool.connection() as conn:
        requests.carry_out(conn)

    assert desk.read(message)["state"] == "ready"
