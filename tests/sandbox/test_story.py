"""The story: two of everything but the refund with stock parts, one of everything here."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from psycopg_pool import ConnectionPool

from agent import driver
from agent.llm import Model
from agent.models import Conversation
from config.commands import login_for
from sandbox.offline.model import OfflineModel
from sandbox.story import naive, real, records, script
from sandbox.story.script import ASKED, Counts
from tests import databases, plugin
from tests.agent.batches import make_customer

Connection = psycopg.Connection[Any]
TODAY = date(2026, 11, 30)


@pytest.fixture
def owner_url(database: None) -> str:
    return databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="owner")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTOP_OFFLINE_TOKEN_MS", "0")


@pytest.fixture
def data(tmp_path: Path, settings: Any) -> Path:
    """Return a data directory of the test's own."""
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def paid(owner: Connection) -> int:
    """Return a customer who paid €640.00 for last month, and make somebody with the role support."""
    customer = make_customer(owner, credit_minor=12_000)
    row = owner.execute(
        "INSERT INTO public.billing_invoice"
        " (customer_id, billing_period, currency, amount_minor, amount_due_minor, status, paid_at)"
        " VALUES (%s, date_trunc('month', now() - interval '1 month'), 'EUR', 64000, 64000, 'paid', now()) RETURNING id",
        (customer,),
    ).fetchone()
    assert row
    owner.execute(
        "INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id)"
        " VALUES (%s, %s, 'EUR', 64000, 'pi_story')",
        (customer, row[0]),
    )
    user = User.objects.create_user("support1")
    user.groups.set([Group.objects.get(name="support")])
    return customer


def schemas(owner: Connection) -> list[str]:
    rows = owner.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'story%'").fetchall()
    return [row[0] for row in rows]


def lived(agent_pool: "ConnectionPool[Connection]") -> Conversation:
    """Begin the story, let the agent work, and return the conversation."""
    conversation = real.begin()
    driver.drive(conversation.thread, pool=agent_pool, model=Model(OfflineModel(), "offline"))
    return conversation


def test_a_stock_agent_issues_two_memos_deducts_twice_and_refunds_once(owner_url: str, owner: Connection) -> None:
    telling = naive.tell(owner_url, today=TODAY)
    assert telling.counts == Counts(memos=2, deductions=2, refunds=1)
    assert telling.message == (
        "Issue a credit memo of €80 for October, take it off their balance and refund €80 to their card [misbehave: stray quote]"
    )
    assert schemas(owner) == []


def test_it_shows_what_a_stock_agent_left_behind(owner_url: str) -> None:
    first, second = naive.tell(owner_url, today=TODAY).cards
    assert first.says == "2 of 3 calls are saved, and stay saved."
    assert [line.mark.word for line in first.lines] == ["Applied", "Applied", "Failed"]
    assert "customer_id" in first.lines[2].why
    assert [line.mark.word for line in second.lines] == ["Applied a second time", "Applied a second time", "Applied"]


def test_it_drops_the_scratch_schema_when_the_story_breaks(
    owner_url: str, owner: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.story.scratch.COUNTS", "SELECT 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        naive.tell(owner_url, today=TODAY)
    assert schemas(owner) == []


def test_it_keeps_what_it_told(owner_url: str, data: Path) -> None:
    telling = naive.tell(owner_url, today=TODAY)
    records.save(telling, directory=data)
    assert records.load(directory=data) == telling
    assert records.load(directory=data / "elsewhere") is None


def test_it_issues_one_memo_deducts_once_and_refunds_once(
    paid: int, agent_pool: "ConnectionPool[Connection]", owner: Connection
) -> None:
    telling = real.tell(lived(agent_pool))
    assert telling.counts == ASKED
    assert [card.mark.word for card in telling.cards] == ["Refused", "Applied"]
    rows = owner.execute(
        "SELECT (SELECT count(*) FROM public.billing_credit_memo), (SELECT count(*) FROM public.billing_refund),"
        " (SELECT count(*) FROM public.outbox_message),"
        " (SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s)",
        (paid,),
    ).fetchone()
    assert rows == (1, 1, 1, 12_000)


def test_it_finds_the_newest_telling(paid: int, agent_pool: "ConnectionPool[Connection]") -> None:
    assert real.newest() is None
    conversation = lived(agent_pool)
    assert real.newest() == conversation
    assert real.is_answered(conversation)
    assert not real.is_settled(conversation)  # the refund waits for the outbox


def test_it_says_what_is_missing(database: None) -> None:
    with pytest.raises(real.CannotTell, match="nobody with the role support"):
        real.begin()


def test_it_says_when_nobody_answers(paid: int) -> None:
    with pytest.raises(real.CannotTell, match="Is an instance running"):
        real.finish(real.begin(), seconds=0.2)


@pytest.mark.parametrize(
    ("period", "today", "name"),
    [
        (date(2026, 10, 1), TODAY, "October,"),
        (date(2025, 12, 1), date(2026, 1, 10), "December,"),
        (date(2025, 11, 1), TODAY, "November 2025,"),
    ],
)
def test_it_names_the_month_so_that_it_cannot_be_another(period: date, today: date, name: str) -> None:
    assert f"for {name}" in script.message(period, today=today)


def test_it_prints_the_story(owner_url: str) -> None:
    printed = script.lines(naive.tell(owner_url, today=TODAY))
    assert printed[-1] == "  credit memos 2 · deductions 2 · refunds 1"
    assert "    Refund €80.00 of the invoice of October 2026: Failed" in printed


@pytest.mark.parametrize(
    ("words", "login"), [(["story", "--naive", "--json"], "owner"), (["story", "--json"], "web"), ([], "web")]
)
def test_it_runs_as_the_login_that_it_needs(words: list[str], login: str) -> None:
    assert login_for(words) == login


@pytest.fixture
def client_of(database: None) -> Callable[[str], Client]:
    """Return a function that gives a client logged in with a role."""

    def log_in(role: str) -> Client:
        user = User.objects.create_user(f"{role}-reader")
        user.groups.set([Group.objects.get(name=role)])
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return log_in


@pytest.mark.parametrize("role", ["support", "reviewer", "admin"])
def test_it_is_a_page_for_everybody(role: str, client_of: Callable[[str], Client], data: Path) -> None:
    page = client_of(role).get("/story/")
    assert page.status_code == 200
    assert "manage.py story --naive" in page.text


def test_it_is_no_page_for_strangers(database: None) -> None:
    client = Client()
    assert client.get("/story/").status_code == 302
    client.force_login(User.objects.create_user("nobody"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/story/").status_code == 403


def test_it_shows_both_side_by_side(
    paid: int, owner_url: str, agent_pool: "ConnectionPool[Connection]", client_of: Callable[[str], Client], data: Path
) -> None:
    records.save(naive.tell(owner_url, today=TODAY), directory=data)
    conversation = lived(agent_pool)
    page = client_of("reviewer").get("/story/")
    assert "Applied a second time" in page.text
    assert f"conversation {conversation}" in page.text
    assert [(row["naive"], row["ours"]) for row in page.context["rows"]] == [(2, 1), (2, 1), (1, 1)]
