"""Taking back what a conversation promised, while there is time for it; and the page on which an admin sets that time."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import redis
from django.conf import settings
from django.test import Client

from agent import interventions
from outbox import requests, sends_after
from tests.agent.scenes import Scene, make_user
from tests.agent.test_cards import CHARGE, CREATE, CREDIT, only
from tests.agent.test_pages import SCRIPT, page

Connection = psycopg.Connection[Any]
AsRole = Callable[[str | None], Client]
MINUTE = {"topic": "payment.charge", "seconds": "60", "reason": "People look twice."}


@pytest.fixture
def message(scene: Scene, web: Connection) -> int:
    """Return a charge that a conversation has promised a moment ago, and that can be taken back for a minute."""
    sends_after.set_pause(web, topic="payment.charge", seconds=60, reason="People look twice.", user=1)
    scene.says("Invoice November and charge it.")
    scene.runs(CREATE, CREDIT, CHARGE)
    number: int = scene.desk.scalar("SELECT id FROM public.outbox_message WHERE topic = 'payment.charge'")
    return number


def client_of(user: Any) -> Client:
    made = Client()
    made.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return made


def text_of(response: Any) -> str:
    return str(response.content.decode())


def wishes(scene: Scene) -> list[tuple[Any, ...]]:
    return scene.desk.owner.execute("SELECT kind, requested_by FROM public.outbox_request").fetchall()


def undo(client: Client, scene: Scene, message: Any, **headers: str) -> Any:
    return client.post(page(scene, "undo/"), {"message": message}, headers=headers)


def over(scene: Scene) -> None:
    scene.desk.owner.execute("UPDATE public.outbox_message SET undo_until = now() - interval '1 s'")


def test_it_offers_to_take_back_what_was_not_sent(scene: Scene, support: Client, message: int) -> None:
    shown = text_of(support.get(page(scene)))

    assert f'id="undo-{message}"' in shown
    assert "It is not sent before" in shown
    assert 'data-undo="59.' in shown or 'data-undo="60.0' in shown
    (one,) = only(scene).lines[2].undos
    assert (one.message, one.asked) == (message, False)


def test_it_is_taken_back_and_the_invoice_with_it(scene: Scene, support: Client, message: int, outbox: Connection) -> None:
    response = undo(support, scene, message)

    assert (response.status_code, response["Location"]) == (302, page(scene))
    assert wishes(scene) == [("cancel", scene.staff.pk)]
    shown = text_of(support.get(page(scene)))
    assert "Being taken back. It is not sent." in shown and f'id="undo-{message}"' not in shown
    requests.carry_out(outbox)
    shown = text_of(support.get(page(scene)))
    assert "Withdrawn" in shown and "withdrawn before it was sent." in shown and "Being taken back" not in shown
    assert only(scene).lines[2].mark.word == "Withdrawn"
    assert scene.desk.scalar("SELECT status FROM public.billing_invoice") == "draft"


def test_it_wakes_the_outbox(scene: Scene, support: Client, message: int) -> None:
    broker = redis.Redis.from_url(settings.REDIS_URL)
    broker.delete("outbox")

    undo(support, scene, message)

    assert broker.llen("outbox") == 1
    broker.delete("outbox")
    broker.close()


def test_a_double_click_does_one_thing(scene: Scene, support: Client, message: int, outbox: Connection) -> None:
    assert [undo(support, scene, message, **SCRIPT).status_code for _ in range(3)] == [200, 200, 200]
    requests.carry_out(outbox)

    assert undo(support, scene, message).status_code == 302
    assert len(wishes(scene)) == 1


@pytest.mark.parametrize("headers", [{}, SCRIPT], ids=["without script", "with script"])
def test_a_late_click_is_told_so(scene: Scene, support: Client, message: int, headers: dict[str, str]) -> None:
    over(scene)

    response = undo(support, scene, message, **headers)

    assert response.status_code == 409
    assert "It is too late to undo this: the time for it is over. Nothing was changed." in text_of(response)
    assert f'id="undo-{message}"' not in text_of(response)
    assert wishes(scene) == []


def test_only_the_conversations_staff_and_admins_take_it_back(scene: Scene, message: int, as_role: AsRole) -> None:
    for role, status in (("support", 403), ("reviewer", 403), ("admin", 302)):
        client = as_role(role)
        shown = text_of(client.get(page(scene)))
        assert (f'id="undo-{message}"' in shown) == (status == 302), role
        assert ("It can be taken back until" in shown) == (status == 403), role
        assert undo(client, scene, message).status_code == status, role
    assert len(wishes(scene)) == 1


def test_a_colleague_who_wrote_there_takes_it_back(scene: Scene, message: int) -> None:
    colleague = make_user("support")
    scene.staff = colleague
    scene.says("Wait.")

    assert undo(client_of(colleague), scene, message).status_code == 302
    assert wishes(scene) == [("cancel", colleague.pk)]


@pytest.mark.parametrize(("given", "status"), [("", 422), ("x", 422), ("0", 422), ("4711", 404), (str(2**70), 422)])
def test_it_takes_back_nothing_that_is_not_there(scene: Scene, support: Client, message: int, given: str, status: int) -> None:
    assert undo(support, scene, given).status_code == status
    assert wishes(scene) == []


def test_it_takes_back_nothing_of_another_conversation(scene: Scene, support: Client, message: int) -> None:
    made = support.post("/conversations/new/", {"subject": scene.desk.customer})["Location"]

    assert support.post(f"{made}undo/", {"message": message}).status_code == 404
    assert wishes(scene) == []


# -- the API -------------------------------------------------------------------------------------


def ask(client: Client, scene: Scene, body: Any) -> Any:
    return client.post(f"/api{page(scene, 'undo/')}", body, content_type="application/json")


def test_the_api_takes_it_back_too(scene: Scene, support: Client, message: int, as_role: AsRole) -> None:
    feed = support.get(f"/api{page(scene)}").json()["feed"]
    (offered,) = feed[-1]["parts"][-1]["card"]["lines"][2]["undos"]
    assert offered["message"] == message and 0 < offered["left"] <= 60 and not offered["asked"]
    assert ask(as_role("support"), scene, {"message": message}).status_code == 403

    assert [ask(support, scene, {"message": message}).status_code for _ in range(2)] == [204, 204]

    assert wishes(scene) == [("cancel", scene.staff.pk)]


def test_the_api_refuses_what_the_page_refuses(scene: Scene, support: Client, message: int) -> None:
    over(scene)
    late = ask(support, scene, {"message": message})
    assert (late.status_code, late.json()) == (409, {"detail": interventions.TOO_LATE})
    for body, status in (({}, 400), ({"message": "1"}, 400), ({"message": 1, "x": 1}, 400), ({"message": 4711}, 404)):
        assert ask(support, scene, body).status_code == status
    assert wishes(scene) == []


# -- the page of the limits ----------------------------------------------------------------------


def test_an_admin_sets_the_time(scene: Scene, as_role: AsRole) -> None:
    admin = as_role("admin")
    assert "Default: it leaves at once." in text_of(admin.get("/limits/"))

    response = admin.post("/limits/send-after/", MINUTE, follow=True)

    shown = text_of(response)
    assert "Messages of payment.charge that are queued from now on can be undone for 1 minute." in shown
    assert "“People look twice.”" in shown and ">1 minute<" in shown
    assert admin.post("/limits/send-after/", MINUTE).status_code == 409
    assert admin.post("/limits/send-after/", MINUTE | {"seconds": "0"}).status_code == 302
    assert scene.desk.count("outbox_send_after") == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seconds": "3601"}, "Write a whole number of seconds from 0 to 3,600; 0 is off."),
        ({"seconds": "-1"}, "Write a whole number of seconds from 0 to 3,600; 0 is off."),
        ({"seconds": "1.5"}, "Write a whole number of seconds from 0 to 3,600; 0 is off."),
        ({"seconds": "²"}, "Write a whole number of seconds from 0 to 3,600; 0 is off."),
        ({"seconds": ""}, "Write how many seconds; 0 is off."),
        ({"reason": " "}, "Say why: it is kept with the time."),
        ({"topic": "notify.email"}, "There is no such topic."),
        ({"topic": "payment.credit_note"}, "There is no such topic."),
    ],
)
def test_it_refuses_a_time_that_makes_no_sense(scene: Scene, as_role: AsRole, given: dict[str, str], said: str) -> None:
    response = as_role("admin").post("/limits/send-after/", MINUTE | given)

    assert response.status_code == 422
    assert said in text_of(response)
    assert scene.desk.count("outbox_send_after") == 0
