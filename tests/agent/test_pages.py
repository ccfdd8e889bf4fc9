"""The chat's pages, with and without script."""

import uuid
from collections.abc import Callable
from html import unescape
from typing import Any

import psycopg
import pytest
import redis
from django.conf import settings
from django.test import Client

from agent.forms import LONGEST
from agent.messages import MOST_QUEUED
from tests.agent.scenes import Scene, make_scene, make_user
from tests.agent.test_cards import CHARGE, CREATE, TOO_MUCH, held

Connection = psycopg.Connection[Any]
SCRIPT = {"HX-Request": "true"}
AsRole = Callable[[str | None], Client]


def page(scene: Scene, then: str = "") -> str:
    return f"/conversations/{scene.conversation.pk}/{then}"


def rows(scene: Scene) -> list[tuple[Any, ...]]:
    return scene.desk.owner.execute(
        "SELECT number, text, state, author FROM public.agent_staff_message ORDER BY number"
    ).fetchall()


def rang(scene: Scene) -> int:
    """Return how many bells rang for the thread, and forget them."""
    broker = redis.Redis.from_url(settings.REDIS_URL)
    found = [item for item in broker.lrange("agent", 0, -1) if str(scene.desk.thread).encode() in item]
    for item in found:
        broker.lrem("agent", 0, item)
    broker.close()
    return len(found)


# -- beginning ---------------------------------------------------------------------------------------


def test_it_begins_a_conversation_about_one_customer(scene: Scene, support: Client) -> None:
    assert "Example" in support.get("/conversations/new/?customer=exam").content.decode()
    response = support.post("/conversations/new/", {"subject": scene.desk.customer})
    assert response.status_code == 302
    assert "Nothing was said yet" in support.get(response["Location"]).content.decode()


@pytest.mark.parametrize("subject", ["0", "-1", "999999", "x", "", str(2**70), "1; DROP TABLE x"])
def test_it_begins_nothing_about_nobody(scene: Scene, support: Client, subject: str) -> None:
    before = scene.desk.count("agent_conversation")
    response = support.post("/conversations/new/", {"subject": subject})
    assert response.status_code == 422
    assert "There is no such customer" in response.content.decode()
    assert scene.desk.count("agent_conversation") == before


def test_it_finds_no_customer_without_breaking(support: Client) -> None:
    for text in ("nobody at all", "%", "a\x00b", "'; --", "x" * 5000):
        assert support.get("/conversations/new/", {"customer": text}).status_code == 200


# -- sending -----------------------------------------------------------------------------------------


def test_it_queues_a_message_and_wakes_the_agent(scene: Scene, support: Client) -> None:
    rang(scene)
    response = support.post(page(scene, "send/"), {"message": uuid.uuid4(), "text": "  Invoice November.\r\nThanks.  "})
    assert (response.status_code, response["Location"]) == (302, page(scene))
    assert rows(scene) == [(1, "Invoice November.\nThanks.", "queued", scene.staff.pk)]
    assert scene.desk.count("agent_event", "kind = 'feed'") == 1
    assert rang(scene) == 1
    assert "Invoice November." in support.get(page(scene)).content.decode()


def test_it_begins_the_thread_of_a_new_conversation(scene: Scene, support: Client) -> None:
    made = support.post("/conversations/new/", {"subject": scene.desk.customer})["Location"]
    support.post(f"{made}send/", {"text": "Hello"})
    assert scene.desk.count("agent_thread", "state = 'idle' AND fence = 0 AND leased_until IS NULL") == 1


def test_it_takes_the_same_message_once(scene: Scene, support: Client) -> None:
    sent = {"message": uuid.uuid4(), "text": "Hello"}
    assert [support.post(page(scene, "send/"), sent).status_code for _ in range(3)] == [302] * 3
    assert len(rows(scene)) == 1


def test_it_refuses_an_id_of_another_message(scene: Scene, support: Client, as_role: AsRole) -> None:
    sent = {"message": uuid.uuid4(), "text": "Hello"}
    support.post(page(scene, "send/"), sent)
    response = as_role("support").post(page(scene, "send/"), sent | {"text": "Mine"})
    assert response.status_code == 422
    assert "Another message has this id" in response.content.decode()
    assert len(rows(scene)) == 1


REFUSED = {
    "": "Write something first",
    " \n ": "Write something first",
    "x" * (LONGEST + 1): "may have 8,000 characters",
    "a\x00b": "cannot be printed",
    "a\x1bb": "cannot be printed",
    "card 4242 4242 4242 4242 please": "looks like a card number",
    "card 4242-4242-4242-4242": "looks like a card number",
}


@pytest.mark.parametrize("text", list(REFUSED), ids=lambda text: repr(text[:12]))
def test_it_says_why_a_message_may_not_be_sent_and_keeps_it(scene: Scene, support: Client, text: str) -> None:
    for headers in ({}, SCRIPT):
        response = support.post(page(scene, "send/"), {"text": text}, headers=headers)
        said = response.content.decode()
        assert response.status_code == 422
        assert REFUSED[text] in said
        assert text.strip().replace("\x00", "") in said
        assert ("<html" in said) is not bool(headers)
    assert rows(scene) == []


@pytest.mark.parametrize(
    "text", ["x" * LONGEST, "Invoice 4242424242424243 of 12345678901234", "ü€😀\t\nok", "+49 170 1234567 8901"]
)
def test_it_takes_every_other_text(scene: Scene, support: Client, text: str) -> None:
    assert support.post(page(scene, "send/"), {"text": text}).status_code == 302
    assert rows(scene)[0][1] == text


def test_it_keeps_messages_in_order_and_not_too_many(scene: Scene, support: Client) -> None:
    for number in range(MOST_QUEUED):
        support.post(page(scene, "send/"), {"text": f"message {number}"})
    response = support.post(page(scene, "send/"), {"text": "one more"})
    assert response.status_code == 422
    assert f"{MOST_QUEUED} messages wait already" in response.content.decode()
    assert [row[0] for row in rows(scene)] == list(range(1, MOST_QUEUED + 1))


def test_it_answers_a_script_with_the_chat_alone(scene: Scene, support: Client) -> None:
    said = support.post(page(scene, "send/"), {"text": "Hello"}, headers=SCRIPT).content.decode()
    assert 'id="talk"' in said
    assert "<html" not in said
    assert "Starting…" in said


# -- the queue ---------------------------------------------------------------------------------------


def test_it_lets_a_waiting_message_be_changed_and_taken_back(scene: Scene, support: Client) -> None:
    first, second = scene.queued("First"), scene.queued("Second")
    assert support.post(page(scene, "edit/"), {"message": first, "text": "Changed"}).status_code == 302
    assert support.post(page(scene, "cancel/"), {"message": second}).status_code == 302
    assert [(row[1], row[2]) for row in rows(scene)] == [("Changed", "queued"), ("Second", "cancelled")]


def test_it_does_not_change_what_the_agent_has_taken(scene: Scene, support: Client) -> None:
    message = scene.says("First")
    edited = support.post(page(scene, "edit/"), {"message": message, "text": "Changed"})
    cancelled = support.post(page(scene, "cancel/"), {"message": message})
    assert (edited.status_code, cancelled.status_code) == (422, 422)
    assert "The agent has taken this message by now" in cancelled.content.decode()
    assert [(row[1], row[2]) for row in rows(scene)] == [("First", "taken")]


def test_it_does_not_put_words_into_another_mouth(scene: Scene, as_role: AsRole) -> None:
    message, other = scene.queued("First"), as_role("support")
    response = other.post(page(scene, "edit/"), {"message": message, "text": "Changed"})
    assert response.status_code == 422
    assert "somebody else" in unescape(response.content.decode())
    assert rows(scene)[0][1] == "First"


def test_it_knows_messages_of_this_conversation_only(scene: Scene, support: Client) -> None:
    message = scene.queued("First")
    other = support.post("/conversations/new/", {"subject": scene.desk.customer})["Location"]
    assert support.post(f"{other}cancel/", {"message": message}).status_code == 422
    assert rows(scene)[0][2] == "queued"


# -- stop and resume ---------------------------------------------------------------------------------


def test_it_asks_a_running_agent_to_stop(scene: Scene, support: Client) -> None:
    assert "The agent is not running" in support.post(page(scene, "stop/")).content.decode()
    scene.stands("running", activity="Writing")
    assert 'data-key="Escape"' in support.get(page(scene)).content.decode()
    assert support.post(page(scene, "stop/")).status_code == 302
    asked = "SELECT stop_requested_by FROM public.agent_thread WHERE stop_requested_at IS NOT NULL"
    assert scene.desk.scalar(asked) == scene.staff.pk
    assert "Stopping before the next step" in support.get(page(scene)).content.decode()


def test_it_rings_again_for_a_stuck_conversation_and_says_who_did(scene: Scene, as_role: AsRole) -> None:
    scene.stands("stuck")
    rang(scene)
    for role in ("support", "reviewer", "admin"):
        client = as_role(role)
        assert "Resume" in client.get(page(scene)).content.decode()
        assert client.post(page(scene, "resume/")).status_code == 302
    assert rang(scene) == 3
    assert scene.desk.count("agent_notice", "kind = 'resumed'") == 3
    assert "asked the agent to go on" in as_role("support").get(page(scene)).content.decode()


# -- who sees what -----------------------------------------------------------------------------------


def test_it_keeps_the_words_of_the_database_from_support(scene: Scene, as_role: AsRole) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, TOO_MUCH, CHARGE)
    for role, sees in (("support", False), ("reviewer", True), ("admin", True)):
        said = as_role(role).get(page(scene)).content.decode()
        assert "The credit balance is" in said
        assert not any(word in said for word in ("23514", "billing_credit", "violates", "UPDATE public"))
        assert ("/audit/attempts/" in said) is sees
        assert ("composer" in said) is (role == "support")


def test_it_leads_a_reviewer_to_the_desk(scene: Scene, as_role: AsRole) -> None:
    held(scene)
    scene.stands("waiting")
    assert "/escalations/1/" in as_role("reviewer").get(page(scene)).content.decode()
    assert "/escalations/1/" not in as_role("support").get(page(scene)).content.decode()


PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "[x](javascript:alert(1)) https://evil.example/?q=secret ![x](https://evil.example/x.png)",
    "{{ 7|add:7 }} {% load static %}",
]


@pytest.mark.parametrize("text", PAYLOADS)
def test_it_shows_whatever_was_said_as_plain_text(scene: Scene, support: Client, text: str, owner: Connection) -> None:
    owner.execute("UPDATE public.billing_customer SET name = %s", (text,))
    scene.says(text)
    scene.answers(text)
    scene.runs(("AskHuman", {"question": text}))
    scene.runs((text[:60], {"x": text}))
    scene.notice(text)
    scene.drafts(text)
    scene.queued("now"), scene.queued(text)
    said = support.get(page(scene)).content.decode()
    assert said.count(text) == 0 if "<" in text else said.count(text) >= 5
    assert unescape(said).count(text) >= 7
    assert "evil.example" not in "".join(part for part in said.split("<") if part.startswith(("a ", "img ", "script ")))


# -- the list ----------------------------------------------------------------------------------------


def test_it_lists_own_all_and_waiting_conversations(scene: Scene, support: Client, desk: Any, outbox: Connection) -> None:
    desk.thread = uuid.uuid4()
    other = make_scene(desk, outbox, staff=make_user("support"))
    listed = {only: support.get(f"/conversations/?only={only}").content.decode() for only in ("mine", "all", "waiting", "x")}
    own, others = f'id="conv-{scene.conversation.pk}"', f'id="conv-{other.conversation.pk}"'
    assert [(own in text, others in text) for text in listed.values()] == [
        (True, False),
        (True, True),
        (False, False),
        (True, False),
    ]


def test_it_finds_conversations_by_customer_number_and_words(scene: Scene, support: Client) -> None:
    scene.says("Invoice the purple seats")
    found = f'id="conv-{scene.conversation.pk}"'
    for text in ("exam", "PURPLE", f"C-{scene.conversation.pk}", str(scene.conversation.pk)):
        assert found in support.get("/conversations/", {"q": text}).content.decode(), text
    for text in ("nothing like it", "C-99999999999999999999", "%", "purple\x00z"):
        assert found not in support.get("/conversations/", {"q": text}).content.decode() or text == "%", text


def test_it_says_how_each_conversation_stands(scene: Scene, support: Client) -> None:
    scene.says("Invoice November.")
    assert "Invoice November." in support.get("/conversations/").content.decode()
    scene.stands("running", activity="Writing an answer")
    assert "Writing an answer" in support.get("/conversations/").content.decode()
    scene.stands("idle")
    scene.notice("Card refused: insufficient funds")
    assert "Card refused: insufficient funds" in support.get("/conversations/").content.decode()


def test_it_shows_the_newest_stretch_of_a_long_talk_and_all_of_it_on_request(scene: Scene, support: Client) -> None:
    scene.says("the very first")
    with scene.desk.pool.connection() as conn:
        conn.execute(
            "INSERT INTO public.agent_transcript_entry (thread, message_id, position, role, text, tool_calls)"
            " SELECT %s, 'ai:' || n, n + 10, 'ai', 'answer ' || n, '[]' FROM generate_series(1, 130) n",
            (scene.desk.thread,),
        )
    short, long = (support.get(page(scene, then)).content.decode() for then in ("", "?all"))
    assert '<p class="words">the very first' not in short
    assert "Show everything before" in short
    assert '<p class="words">the very first' in long
