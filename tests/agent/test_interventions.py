"""Withdrawing, stepping in and handing back on the page and through the API: who may, who wins, and what stays typed."""

import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.test import Client

from agent import stepping_in
from escalations import lifecycle
from tests.agent.scenes import Scene, make_user
from tests.agent.test_cards import CREDIT, MEMO, MONTH
from tests.agent.test_pages import SCRIPT, page, rang

Connection = psycopg.Connection[Any]
AsRole = Callable[[str | None], Client]


@pytest.fixture
def escalation(scene: Scene) -> int:
    """Return the question about a step that waits for a reviewer."""
    scene.says("Give €600.00 back.")
    scene.runs(("CreateInvoice", {**MONTH, "amount_minor": 90_000}))
    step = scene.calls(MEMO, CREDIT)
    made = step.escalates(step.runs())
    scene.stands("waiting")
    rang(scene)
    return made


def client_of(user: Any) -> Client:
    made = Client()
    made.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return made


def text_of(response: Any) -> str:
    return str(response.content.decode())


def decisions(scene: Scene) -> list[tuple[Any, ...]]:
    return scene.desk.owner.execute("SELECT kind, text, decided_by FROM public.escalations_decision").fetchall()


def person(scene: Scene) -> Any:
    return scene.desk.scalar("SELECT stepped_in_by FROM public.agent_thread WHERE thread = %s", scene.desk.thread)


def said(scene: Scene) -> list[tuple[Any, ...]]:
    return scene.desk.owner.execute("SELECT text, author FROM public.agent_notice WHERE kind = 'person_said'").fetchall()


# -- withdrawing -------------------------------------------------------------------------------------


def test_it_withdraws_and_wakes_the_agent(scene: Scene, support: Client, escalation: int) -> None:
    shown = text_of(support.get(page(scene)))
    assert "Withdraw the request" in shown
    assert "Reviewers no longer decide about it." in shown
    response = support.post(page(scene, "withdraw/"), {"escalation": escalation, "text": "They changed their mind."})
    assert (response.status_code, response["Location"]) == (302, page(scene))
    assert decisions(scene) == [("withdraw", "They changed their mind.", scene.staff.pk)]
    assert rang(scene) == 1
    shown = text_of(support.get(page(scene)))
    assert "withdrew the request: “They changed their mind.”" in shown
    assert "Withdraw the request" not in shown


def test_anybody_of_support_who_wrote_here_withdraws(scene: Scene, support: Client, escalation: int) -> None:
    colleague, stranger = make_user("support"), make_user("support")
    before, scene.staff = scene.staff, colleague
    scene.says("And hurry.")
    scene.staff = before
    assert "Withdraw the request" not in text_of(client_of(stranger).get(page(scene)))
    response = client_of(stranger).post(page(scene, "withdraw/"), {"escalation": escalation})
    assert response.status_code == 409
    assert "Only somebody who wrote in this conversation can withdraw its request. Nothing was withdrawn." in text_of(response)
    assert "Withdraw the request" in text_of(client_of(colleague).get(page(scene)))
    assert client_of(colleague).post(page(scene, "withdraw/"), {"escalation": escalation}).status_code == 302
    assert decisions(scene) == [("withdraw", "", colleague.pk)]


@pytest.mark.parametrize("headers", [{}, SCRIPT], ids=["without script", "with script"])
def test_it_names_who_decided_first(
    scene: Scene, support: Client, escalation: int, web: Connection, headers: dict[str, str]
) -> None:
    reviewer = make_user("reviewer", name="robin")
    lifecycle.decide(web, escalation=escalation, kind="reject", text="Not owed.", user=reviewer.pk)
    response = support.post(page(scene, "withdraw/"), {"escalation": escalation, "text": "Too late"}, headers=headers)
    assert response.status_code == 409
    assert "robin rejected it at " in text_of(response)
    assert "Nothing was withdrawn." in text_of(response)
    assert len(decisions(scene)) == 1
    assert rang(scene) == 0


def test_it_withdraws_once(scene: Scene, support: Client, escalation: int) -> None:
    answers = [support.post(page(scene, "withdraw/"), {"escalation": escalation}).status_code for _ in range(3)]
    assert answers == [302, 409, 409]
    assert len(decisions(scene)) == 1


def test_it_withdraws_what_another_reviewer_holds(scene: Scene, support: Client, escalation: int, web: Connection) -> None:
    lifecycle.claim(web, escalation=escalation, user=make_user("reviewer").pk)
    assert support.post(page(scene, "withdraw/"), {"escalation": escalation}).status_code == 302


@pytest.mark.parametrize("given", ["", "x", "0", "-1", str(2**70), "999999"])
def test_it_withdraws_only_what_is_asked_here(scene: Scene, support: Client, escalation: int, given: str) -> None:
    assert support.post(page(scene, "withdraw/"), {"escalation": given}).status_code in (404, 422)
    assert decisions(scene) == []


def test_it_withdraws_nothing_of_another_conversation(scene: Scene, support: Client, escalation: int) -> None:
    made = support.post("/conversations/new/", {"subject": scene.desk.customer})["Location"]
    assert support.post(f"{made}withdraw/", {"escalation": escalation}).status_code == 404
    assert decisions(scene) == []


ROLES: dict[str | None, dict[str, int]] = {
    "support": {"withdraw": 409, "step-in": 302, "say": 409, "hand-back": 409},  # not theirs to withdraw; nobody stepped in
    "reviewer": {"withdraw": 403, "step-in": 302, "say": 409, "hand-back": 409},
    "admin": {"withdraw": 403, "step-in": 403, "say": 403, "hand-back": 409},
    None: {"withdraw": 403, "step-in": 403, "say": 403, "hand-back": 403},
}


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_it_asks_for_the_role(scene: Scene, escalation: int, as_role: AsRole, role: str | None) -> None:
    given = {"escalation": str(escalation), "text": "Hello"}
    for act in ("say", "hand-back", "withdraw", "step-in"):
        assert as_role(role).post(page(scene, f"{act}/"), given).status_code == ROLES[role][act], act
        assert as_role(role).get(page(scene, f"{act}/")).status_code == 405


def test_it_asks_for_a_log_in(scene: Scene) -> None:
    for act in ("withdraw", "step-in", "say", "hand-back"):
        assert Client().post(page(scene, f"{act}/")).status_code == 302
        assert Client().post(f"/api{page(scene)}{act}/").status_code == 403


# -- stepping in -------------------------------------------------------------------------------------


def test_it_steps_in_answers_and_hands_back(scene: Scene, support: Client, as_role: AsRole) -> None:
    assert "Step in for the agent" in text_of(support.get(page(scene)))
    assert support.post(page(scene, "step-in/")).status_code == 302
    assert person(scene) == scene.staff.pk
    mine, theirs = text_of(support.get(page(scene))), text_of(as_role("support").get(page(scene)))
    for shown in (mine, theirs):
        assert f"{scene.staff} stepped in at " in shown
    assert "Answer about " in mine
    assert "Hand back</button>" in mine
    assert "the agent reads it after the hand-back" in theirs
    assert f"Step in for {scene.staff}" in theirs
    assert "Hand back</button>" not in theirs
    message = {"message": uuid.uuid4(), "text": "I called <b>them</b>.\nAll is well."}
    for _ in range(3):
        assert support.post(page(scene, "say/"), message).status_code == 302
    assert said(scene) == [("I called <b>them</b>.\nAll is well.", scene.staff.pk)]
    assert "I called &lt;b&gt;them&lt;/b&gt;." in text_of(as_role("reviewer").get(page(scene)))
    assert rang(scene) == 0
    assert support.post(page(scene, "hand-back/")).status_code == 302
    assert person(scene) is None
    assert rang(scene) == 1
    assert "instead of the agent" in text_of(support.get(page(scene)))


def test_others_messages_wait_meanwhile(scene: Scene, support: Client, as_role: AsRole) -> None:
    support.post(page(scene, "step-in/"))
    response = as_role("support").post(page(scene, "send/"), {"text": "For the agent"}, headers=SCRIPT)
    assert response.status_code == 200
    assert "1 message waits for the hand-back" in text_of(response)


def test_a_reviewer_answers_without_being_support(scene: Scene, as_role: AsRole) -> None:
    reviewer = as_role("reviewer")
    assert 'id="composer"' not in text_of(reviewer.get(page(scene)))
    reviewer.post(page(scene, "step-in/"))
    assert 'id="composer"' in text_of(reviewer.get(page(scene)))
    assert reviewer.post(page(scene, "say/"), {"text": "I am on it."}).status_code == 302
    assert reviewer.post(page(scene, "send/"), {"text": "For the agent"}).status_code == 403


@pytest.mark.parametrize("headers", [{}, SCRIPT], ids=["without script", "with script"])
def test_it_names_who_was_first_and_keeps_what_was_typed(
    scene: Scene, support: Client, as_role: AsRole, headers: dict[str, str]
) -> None:
    support.post(page(scene, "step-in/"))
    late = as_role("reviewer").post(page(scene, "step-in/"), headers=headers)
    assert late.status_code == 409
    assert f"{scene.staff} stepped in at " in text_of(late)
    assert "Look at the conversation before you step in." in text_of(late)
    other = as_role("support")
    assert other.post(page(scene, "step-in/"), {"instead_of": scene.staff.pk}, headers=headers).status_code in (200, 302)
    response = support.post(page(scene, "say/"), {"text": "What I typed"}, headers=headers)
    assert response.status_code == 409
    assert "Your message was not posted." in text_of(response)
    assert "What I typed</textarea>" in text_of(response)
    assert said(scene) == []


def test_a_reviewer_or_an_admin_hands_back_for_somebody_who_left(scene: Scene, support: Client, as_role: AsRole) -> None:
    for role in ("reviewer", "admin"):
        support.post(page(scene, "step-in/"))
        assert as_role("support").post(page(scene, "hand-back/")).status_code == 409
        assert "Hand back</button>" in text_of(as_role(role).get(page(scene)))
        assert as_role(role).post(page(scene, "hand-back/")).status_code == 302
        assert person(scene) is None


@pytest.mark.parametrize("text", ["", "x" * 8001, "card 4242 4242 4242 4242"])
def test_it_refuses_what_may_not_be_said_and_keeps_it(scene: Scene, support: Client, text: str) -> None:
    support.post(page(scene, "step-in/"))
    response = support.post(page(scene, "say/"), {"text": text})
    assert response.status_code == 422
    assert f"{text}</textarea>" in text_of(response)
    assert said(scene) == []


def test_it_shows_a_person_in_the_list(scene: Scene, support: Client) -> None:
    support.post(page(scene, "step-in/"))
    listed = text_of(support.get("/conversations/?only=all"))
    assert f"{scene.staff} answers" in listed
    assert "A person answers" in listed


# -- the API -----------------------------------------------------------------------------------------


def test_the_api_withdraws_with_the_same_rules(scene: Scene, support: Client, as_role: AsRole, escalation: int) -> None:
    address = f"/api{page(scene)}"
    waits = support.get(address).json()["waits"]
    assert (waits["escalation"], waits["who"]) == (escalation, "a reviewer")
    given: dict[str, Any] = {"escalation": escalation, "reason": "Changed"}
    post = {"content_type": "application/json"}
    assert as_role("reviewer").post(f"{address}withdraw/", given, **post).status_code == 403
    assert support.post(f"{address}withdraw/", given | {"escalation": "1"}, **post).status_code == 400
    assert support.post(f"{address}withdraw/", given, **post).status_code == 204
    again = support.post(f"{address}withdraw/", given, **post)
    assert again.status_code == 409
    assert again.json()["detail"].startswith(f"{scene.staff} withdrew it at ")
    assert support.get(address).json()["waits"] is None


def test_the_api_steps_in_with_the_same_rules(scene: Scene, support: Client, as_role: AsRole) -> None:
    address, post = f"/api{page(scene)}", {"content_type": "application/json"}
    assert support.post(f"{address}step-in/", {}, **post).status_code == 204
    found = support.get(address).json()
    assert (found["stepped_in"]["name"], found["standing"]["stepped_in"]) == (str(scene.staff), True)
    late = as_role("reviewer").post(f"{address}step-in/", {}, **post)
    assert (late.status_code, str(scene.staff) in late.json()["detail"]) == (409, True)
    message = {"id": str(uuid.uuid4()), "text": "Done by hand."}
    assert [support.post(f"{address}say/", message, **post).status_code for _ in range(2)] == [201, 200]
    assert [item["kind"] for item in support.get(address).json()["feed"]] == ["notice", "person"]
    assert support.post(f"{address}hand-back/", {}, **post).status_code == 204
    assert support.post(f"{address}hand-back/", {}, **post).status_code == 409
    assert stepping_in.SAID == "person_said"
    assert len(said(scene)) == 1


# -- the reviewer's page -----------------------------------------------------------------------------


def test_the_reviewer_reads_that_a_person_answers_meanwhile(
    scene: Scene, support: Client, as_role: AsRole, escalation: int
) -> None:
    reviewer, sentence = as_role("reviewer"), f"{scene.staff} stepped in for the agent at "
    assert sentence not in text_of(reviewer.get(f"/escalations/{escalation}/"))
    support.post(page(scene, "step-in/"))
    shown = text_of(reviewer.get(f"/escalations/{escalation}/"))
    assert sentence in shown
    assert "what was decided runs once they hand back" in shown
    given = {"kind": "reject", "text": "Not owed."}
    assert reviewer.post(f"/escalations/{escalation}/decide/", given).status_code in (200, 302)
    assert "decided; it waits for the hand-back" in text_of(support.get(page(scene)))
