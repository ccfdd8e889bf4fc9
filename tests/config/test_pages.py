"""The frame's own pages: logging in, where a person starts, and what is said when something fails."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import path

from config import errors, urls

PASSWORD = "correct horse battery"


def person(role: str | None = None, *, name: str = "robin") -> Any:
    user = get_user_model().objects.create_user(name, password=PASSWORD)
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


def logged_in(role: str | None) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(person(role), backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.parametrize(("role", "start"), [("support", "/conversations/"), ("reviewer", "/escalations/"), ("admin", "/audit/")])
def test_it_starts_a_person_where_their_work_is(database: None, role: str, start: str) -> None:
    person(role)
    client = Client()
    response = client.post("/login/", {"username": "robin", "password": PASSWORD})
    assert response["Location"] == "/"
    assert client.get("/")["Location"] == start


def test_it_tells_somebody_without_a_role_what_to_do(database: None) -> None:
    response = logged_in(None).get("/")
    assert response.status_code == 403
    assert b"You have no role yet. Ask an admin for one." in response.content


def test_it_counts_the_tries_and_then_pauses(database: None) -> None:
    person("support")
    client, said = Client(), []
    for _ in range(4):
        said.append(client.post("/login/", {"username": "robin", "password": "wrong"}).content.decode())
    assert [f"{left} tr" in text for left, text in zip((4, 3, 2, 1), said, strict=True)] == [True] * 4
    response = client.post("/login/", {"username": "robin", "password": "wrong"})
    assert response.status_code == 429
    assert "Wait 15 minutes" in response.content.decode()
    assert client.post("/login/", {"username": "robin", "password": PASSWORD}).status_code == 429


def test_it_pauses_a_name_at_an_address_only(database: None) -> None:
    person("support")
    for _ in range(5):
        Client(REMOTE_ADDR="10.0.0.1").post("/login/", {"username": "robin", "password": "wrong"})
    assert Client(REMOTE_ADDR="10.0.0.2").post("/login/", {"username": "robin", "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000, "", "<script>alert(1)</script>", "\ud83d\ude00"])
def test_it_takes_any_name_as_wrong(database: None, name: str) -> None:
    encoded = name.encode("utf-16", "surrogatepass").decode("utf-16")
    response = Client(raise_request_exception=False).post("/login/", {"username": encoded, "password": "x"})
    assert response.status_code == 422
    assert b"<script>alert" not in response.content


def test_it_does_not_send_people_to_other_hosts(database: None) -> None:
    person("support")
    given = {"username": "robin", "password": PASSWORD, "next": "https://evil.example/"}
    assert Client().post("/login/", given)["Location"] == "/"


def test_it_ends_the_session_by_post_only(database: None) -> None:
    client = logged_in("support")
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/conversations/").status_code == 302


def test_it_says_whether_it_is_well(database: None) -> None:
    response = Client().get("/healthz")
    assert (response.status_code, response.json()) == (200, {"database": True, "broker": True})


# -- failures ----------------------------------------------------------------------------------------


def _breaks(request: Any) -> None:
    raise RuntimeError("table secret_table does not exist")


@pytest.fixture
def breaking() -> Iterator[str]:
    """Return the address of a page that breaks."""
    urls.urlpatterns.append(path("breaks/", _breaks))
    yield "/breaks/"
    urls.urlpatterns.pop()


@pytest.mark.urls("config.urls")
def test_it_says_that_a_page_broke_and_nothing_more(database: None, breaking: str) -> None:
    response = logged_in("support").get(breaking)
    assert response.status_code == 500
    assert b"This page broke" in response.content
    assert b"tr-" in response.content
    assert b"secret_table" not in response.content


@pytest.mark.urls("config.urls")
def test_it_never_promises_that_a_change_did_not_happen(database: None, breaking: str) -> None:
    response = logged_in("support").post(breaking)
    assert response.status_code == 500
    assert b"Nothing was changed" not in response.content
    assert b"It may have been carried out or not" in response.content


def test_it_answers_htmx_with_a_strip_instead_of_a_page(database: None) -> None:
    response = logged_in("support").get("/nothing-here/", headers={"HX-Request": "true"})
    assert response.status_code == 404
    assert b"<html" not in response.content
    assert b"Nothing here." in response.content


def test_it_answers_the_api_in_json(database: None) -> None:
    response = logged_in("support").get("/api/nothing-here/")
    assert (response.status_code, response.json()) == (
        404,
        {"detail": "Nothing here. It does not exist, or it is not yours to see."},
    )


def test_it_gives_a_wrong_method_its_page_and_says_what_is_taken(database: None) -> None:
    response = logged_in("support").put("/conversations/")
    assert response.status_code == 405
    assert "GET" in response["Allow"]
    assert b"That page does not take this" in response.content


def test_it_refuses_a_body_that_is_too_long(database: None) -> None:
    client = logged_in("support")
    client.handler.enforce_csrf_checks = True
    client.get("/conversations/")  # which sets the cookie that a form needs
    response = client.post("/conversations/new/", "customer=" + "x" * 70_000, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 413
    assert b"64 kB" in response.content


def test_it_explains_a_form_that_is_out_of_date(database: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("support"), backend="django.contrib.auth.backends.ModelBackend")
    response = client.post("/conversations/new/", {"subject": "1"})
    assert response.status_code == 403
    assert b"This form is out of date" in response.content


def test_it_has_words_for_every_failure_it_answers() -> None:
    assert set(errors.PAGES) == {400, 403, 404, 405, 413, 429, 500}
