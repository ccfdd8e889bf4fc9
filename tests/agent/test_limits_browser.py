"""The pages of the limits in a browser: for everybody, on a phone, in the dark, and without a script."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.agent.batches import make_customer
from tests.agent.scenes import make_user
from tests.agent.serving import Server, serving
from tests.browser.looks import problems
from tests.stack import Complaints

Connection = psycopg.Connection[Any]
Visit = Callable[..., Page]
PAGES = ["/limits/", "/limits/per_call/", "/limits/customer_day/?try=1&value=1", "/limits/same_effect/?try=1&tool=QueueRefund"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a web process on the test's database."""
    with serving() as started:
        yield started


@pytest.fixture
def visit(server: Server, lend: Callable[..., Page], owner: Connection) -> Visit:
    """Return a function that opens a page as a person."""
    make_customer(owner)

    def open_page(path: str, *, user: Any, **options: Any) -> Page:
        page = lend(base_url=server.address, cookies=[server.cookie(user)], **options)
        page.goto(path)
        return page

    return open_page


def everything(owner: Connection, *, user: int) -> None:
    """Let an admin and another one wait for each other, with writes paused meanwhile."""
    owner.execute(
        "INSERT INTO public.agent_policy (rule, value, reason, set_by) VALUES ('kill_switch', 1, 'Incident', %s)", (user,)
    )
    for rule, tool, by in (("kill_switch", "", user), ("per_call", "QueueRefund", user + 1)):
        owner.execute(
            "INSERT INTO public.agent_policy_request (rule, tool, value, reason, asked_by) VALUES (%s, %s, 0, 'Over', %s)",
            (rule, tool, by),
        )


def test_everybody_can_read_them(visit: Visit, owner: Connection, complaints: Complaints) -> None:
    complaints.expect("422")
    admin = make_user("admin")
    everything(owner, user=admin.pk)
    assert [found for path in PAGES for found in problems(visit(path, user=admin), path)] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_in_one_direction_only(visit: Visit, owner: Connection, complaints: Complaints, path: str) -> None:
    complaints.expect("422")
    admin = make_user("admin")
    everything(owner, user=admin.pk)
    page = visit(path, user=admin, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_two_admins_loosen_a_limit_without_a_script(visit: Visit, owner: Connection) -> None:
    first, second = (visit("/limits/per_call/", user=make_user("admin"), java_script_enabled=False) for _ in range(2))
    first.get_by_role("link", name="Change QueueRefund").first.click()
    first.select_option("#currency", "EUR")
    first.fill("#value", "300.00")
    first.click("text=What would it have held?")
    expect(first.locator(".answer")).to_contain_text("There was no step with QueueRefund in the last 30 days.")
    expect(first.locator("#value")).to_have_value("300.00")
    assert "csrf" not in first.url
    first.fill("#reason", "Reviewers are away")
    first.click("text=Set limit")
    expect(first.locator(".asks button.primary")).to_be_disabled()
    second.reload()
    second.click(".asks >> text=Confirm")
    row = owner.execute(
        "SELECT rule, tool, currency, value, previous, confirmed_by <> set_by FROM public.agent_policy"
    ).fetchone()
    assert row == ("per_call", "QueueRefund", "EUR", 30_000, 25_000, True)
