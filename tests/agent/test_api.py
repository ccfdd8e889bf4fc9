"""The JSON API: the same rules as the pages, strictly."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.agent.scenes import Scene
from tests.agent.test_cards import CREATE, TOO_MUCH

AsRole = Callable[[str | None], Client]


def post(client: Client, address: str, body: Any) -> Any:
    data = body if isinstance(body, str) else json.dumps(body)
    return client.post(address, data, content_type="application/json")


def api(scene: Scene, then: str = "") -> str:
    return f"/api/conversations/{scene.conversation.pk}/{then}"


def test_it_begins_and_lists_conversations(scene: Scene, support: Client) -> None:
    made = post(support, "/api/conversations/", {"subject": scene.desk.customer})
    assert made.status_code == 201
    assert made.json()["name"] == "Example"
    listed = support.get("/api/conversations/").json()
    assert [row["id"] for row in listed["results"]] == [made.json()["id"], scene.conversation.pk]


BAD = {
    '{"subject": 999999}': "There is no such customer.",
    '{"subject": "1"}x': "not valid JSON",
    '{"subject": 1, "role": "admin"}': "This field is not known.",
    "{}": "required",
    "[]": "",
    '{"subject": 1, "subject": 2}': "twice",
    '{"subject": 1e3}': "whole",
    '{"subject": "1"}': "whole",
    '{"subject": "\u0661"}': "whole",
    '{"subject": true}': "whole",
}


@pytest.mark.parametrize("body", list(BAD))
def test_it_begins_nothing_from_a_bad_body(scene: Scene, support: Client, body: str) -> None:
    response = post(support, "/api/conversations/", body)
    assert response.status_code == 400
    assert BAD[body] in response.content.decode()
    assert scene.desk.count("agent_conversation") == 1


def test_it_takes_json_only(scene: Scene, support: Client) -> None:
    assert support.post("/api/conversations/", {"subject": 1}).status_code == 415


def test_it_needs_a_csrf_token(scene: Scene, support: Client) -> None:
    support.handler.enforce_csrf_checks = True
    assert post(support, api(scene, "messages/"), {"text": "x"}).status_code == 403


def test_it_sends_the_same_message_once(scene: Scene, support: Client) -> None:
    body = {"id": str(uuid.uuid4()), "text": "Hello"}
    answers = [post(support, api(scene, "messages/"), body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert {answer.json()["id"] for answer in answers} == {body["id"]}
    assert scene.desk.count("agent_staff_message") == 1
    assert post(support, api(scene, "messages/"), {"text": "No id"}).status_code == 201


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": ""}, 400),
        ({"text": "a\x1bb"}, 400),
        ({"text": "x" * 8001}, 400),
        ({"text": 5}, 400),
        ({"text": None}, 400),
        ({"text": "x", "id": 5}, 400),
        ({"text": "x", "id": None}, 400),
        ({"text": ["x"]}, 400),
        ({"text": "x", "id": "7"}, 400),
        ({"text": "x", "author": 1}, 400),
        ('{"text": "\\u0000"}', 400),
        ('{"text": "' + "x" * 70_000 + '"}', 413),
    ],
    ids=str,
)
def test_it_refuses_a_message_that_may_not_be_sent(scene: Scene, support: Client, body: Any, status: int) -> None:
    assert post(support, api(scene, "messages/"), body).status_code == status


def test_it_refuses_another_messages_id(scene: Scene, support: Client, as_role: AsRole) -> None:
    body = {"id": str(uuid.uuid4()), "text": "Hello"}
    post(support, api(scene, "messages/"), body)
    response = post(as_role("support"), api(scene, "messages/"), body)
    assert (response.status_code, "Another message" in response.json()["detail"]) == (409, True)


def test_it_gives_the_feed_of_a_conversation(scene: Scene, support: Client) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, TOO_MUCH, text="I will.")
    scene.queued("And then?")
    found = support.get(api(scene)).json()
    assert [item["kind"] for item in found["feed"]] == ["staff", "agent"]
    card = found["feed"][1]["parts"][1]["card"]
    assert card["mark"]["word"] == "Undone"
    assert [line["mark"]["word"] for line in card["lines"]] == ["Not applied: undone", "Failed"]
    assert [message["text"] for message in found["queue"]] == ["And then?"]
    assert "23514" not in json.dumps(found)


def test_it_stops_and_resumes(scene: Scene, support: Client) -> None:
    assert post(support, api(scene, "stop/"), {}).status_code == 409
    scene.stands("running")
    assert post(support, api(scene, "stop/"), {}).status_code == 204
    assert post(support, api(scene, "resume/"), {}).status_code == 204


def test_it_does_not_know_what_is_not_there(scene: Scene, support: Client) -> None:
    for then in ("", "messages/", "stop/", "resume/"):
        call = support.get if not then else lambda address: post(support, address, {"text": "x"})
        assert call(f"/api/conversations/4711/{then}").status_code == 404


def test_it_never_drops_another_text_under_a_known_id(scene: Scene, support: Client) -> None:
    known = str(uuid.uuid4())
    post(support, api(scene, "messages/"), {"id": known, "text": "Hello"})
    assert post(support, api(scene, "messages/"), {"id": known, "text": "Invoice November"}).status_code == 409


def test_it_says_so_when_a_message_is_kept_by_another_transaction(scene: Scene, support: Client, owner: Any) -> None:
    body = {"id": str(uuid.uuid4()), "text": "Hello"}
    assert post(support, api(scene, "messages/"), body).status_code == 201
    support.raise_request_exception = False
    with owner.transaction():
        owner.execute("SELECT FROM public.agent_feed FOR UPDATE")  # as the agent does, taking the message
        response = post(support, api(scene, "messages/"), body)
    assert response.status_code == 503
    assert response.json() == {"detail": "Something else works on this just now. Nothing was changed. Try again in a moment."}
    assert post(support, api(scene, "messages/"), body).status_code == 200
