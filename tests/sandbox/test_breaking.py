"""Break it yourself exists in a demonstration only: with everything embedded, under a living supervisor, never in production."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as configured
from django.test import Client, override_settings

from sandbox.servers import identities
from sandbox.supervisor import instances
from sandbox.supervisor.records import Record
from tests.agent.scenes import make_user
from tests.waiting import until

PATHS = ("/break/", "/break/1/", "/break/strip/")
POSTS = ("/break/ask/", "/break/worker/", "/break/answer/", "/break/clock/", "/break/database/", "/break/broker/")
BUTTONS = (
    "Kill the worker in the middle of this batch", "Lose Stripe’s answer", "Jump 25 hours", "Stop PostgreSQL", "Stop the broker",
)  # fmt: skip


@pytest.fixture
def demonstration(database: None, tmp_path: Path) -> Iterator[Path]:
    """Make this process look like the web process of a demonstration; its Stripe sandbox does not answer."""
    content = {
        "database": {"superuser": "postgresql://", configured.LOGIN: configured.DATABASE_URL},
        "stripe": {"api_base": f"http://127.0.0.1:{instances.free_port()}", "api_key": "sk_test_x", "webhook_secret": "whsec_x"},
    }
    for name in ("run", "valkey", "postgres"):
        (tmp_path / name).mkdir()
    instances.write(tmp_path, content)
    Record(file=tmp_path / "processes.json", state="ready", supervisor=identities.of(os.getpid())).write()
    with override_settings(DATA_DIR=tmp_path):
        yield tmp_path


def client(role: str | None) -> Client:
    made = Client()
    made.force_login(make_user(role), backend="django.contrib.auth.backends.ModelBackend")
    return made


def test_it_is_there_in_a_demonstration(demonstration: Path) -> None:
    page = client("support").get("/break/").content.decode()
    assert [button for button in BUTTONS if button not in page] == []
    assert 'href="/break/"' in client("admin").get("/audit/").content.decode()
    assert client(None).get("/break/").status_code == 403
    assert client("admin").post("/break/ask/").status_code == 403
    assert Client().get("/break/").status_code == 302


def absent() -> None:
    """See that no address of it exists and nothing leads there."""
    support = client("support")
    assert [path for path in PATHS if support.get(path).status_code != 404] == []
    assert [path for path in POSTS if support.post(path).status_code != 404] == []
    assert Client().get("/break/strip/").status_code == 404
    for path in ("/conversations/", "/story/"):
        assert "/break/" not in support.get(path).content.decode()


def test_it_is_absent_in_production(demonstration: Path) -> None:
    with override_settings(PRODUCTION=True):
        absent()


def test_it_is_absent_without_a_supervisor(demonstration: Path) -> None:
    (demonstration / "processes.json").unlink()
    absent()


@pytest.mark.parametrize("part", ["database", "stripe"])
def test_it_is_absent_where_a_part_is_somebody_elses(demonstration: Path, part: str) -> None:
    content = instances.read(demonstration)
    instances.write(demonstration, content | ({"database": {"web": "postgresql://"}} if part == "database" else {"stripe": {}}))
    absent()


def test_a_button_needs_its_token(demonstration: Path) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user("support"), backend="django.contrib.auth.backends.ModelBackend")
    assert strict.post("/break/worker/").status_code == 403
    assert client("support").get("/break/worker/").status_code == 405


def test_without_customers_it_says_why_nothing_is_broken(demonstration: Path) -> None:
    answer = client("support").post("/break/worker/", headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert "start an instance with its demo data" in answer.content.decode()


def test_who_may_not_write_needs_a_conversation_to_aim_at(demonstration: Path) -> None:
    reviewer = client("reviewer")
    assert reviewer.post("/break/worker/").status_code == 302
    until(lambda: "support staff has to begin the conversation" in reviewer.get("/break/").content.decode(), what="the reason")
    assert not list((demonstration / "run").glob("fault-*"))  # nothing was armed
