"""The desk in a browser: keys, sheets, and a page that follows its decision by itself."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from tests.agent.serving import Server, serving
from tests.escalations.scenes import Scene, person
from tests.stack import Complaints

Begin = Callable[..., Scene]
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a web process on the test's database."""
    with serving() as started:
        yield started


@pytest.fixture
def visit(server: Server, browser: Browser, complaints: Complaints) -> Iterator[Open]:
    """Return a function that opens a page as a person, on a desk or on a phone."""
    opened = []

    def open_page(user: Any, path: str, *, width: int = 1440) -> Page:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        context = browser.new_context(base_url=server.address, viewport={"width": width, "height": 844})
        opened.append(context)
        name = configured.SESSION_COOKIE_NAME
        context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server.address}])
        page = context.new_page()
        complaints.watch(page)
        page.goto(path)
        return page

    yield open_page
    for context in opened:
        context.close()


def test_a_case_is_found_claimed_and_approved_by_keys_alone(
    scene: Begin, visit: Open, web: Any, agent: Any, reviewer: Any
) -> None:
    scene(name="Trial & Error LLC").rollbacks()
    made = scene()
    escalation = made.approval()
    made.previews()
    page = visit(reviewer, "/escalations/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/escalations/{escalation}/")
    page.keyboard.press("c")
    expect(page.get_by_text("You hold it for")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Approved. The agent goes on now.")).to_be_visible()
    assert made.carries_out().kind == "applied"
    expect(page.get_by_text("2 calls were applied together")).to_be_visible()  # without a reload
    expect(page.get_by_role("button", name="Run again")).to_have_count(0)
    expect(page.get_by_text("It ran: applied")).to_be_visible()  # the rest of the page followed


@pytest.mark.parametrize("width", [1440, 390])
def test_a_batch_is_rejected_with_a_reason(scene: Begin, visit: Open, web: Any, reviewer: Any, width: int) -> None:
    escalation = scene().approval()
    page = visit(reviewer, f"/escalations/{escalation}/", width=width)
    page.get_by_role("button", name="Reject", exact=False).first.click()
    page.get_by_label("It acts on the wrong record.").check()
    page.get_by_label("Details for the agent and nina").fill("It is the invoice of August.")
    page.get_by_role("button", name="Reject both calls").click()
    expect(page.get_by_text("Rejected. The agent goes on now.")).to_be_visible()
    (text,) = web.execute("SELECT text FROM public.escalations_decision").fetchone()
    assert text == "It acts on the wrong record. It is the invoice of August."


def test_a_rejection_without_a_reason_stands_open_with_its_error(
    scene: Begin, visit: Open, complaints: Complaints, reviewer: Any
) -> None:
    complaints.expect("422")
    page = visit(reviewer, f"/escalations/{scene().approval()}/")
    page.keyboard.press("r")
    expect(page.get_by_label("Something else")).to_be_focused()
    page.get_by_role("button", name="Reject both calls").click()
    details = page.get_by_label("Details for the agent and nina")
    expect(details).to_be_focused()
    expect(details).to_have_accessible_description("Give a reason: the agent and the staff member will read it.")


def test_a_key_leads_to_the_words_that_are_missing(scene: Begin, visit: Open, web: Any, reviewer: Any) -> None:
    page = visit(reviewer, f"/escalations/{scene().asked()}/")
    page.keyboard.press("n")
    answer = page.get_by_label("Answer the agent")
    expect(answer).to_be_focused()
    assert web.execute("SELECT count(*) FROM public.escalations_decision").fetchone() == (0,)
    page.keyboard.press("n")  # goes into the box
    expect(answer).to_have_value("n")
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("d")
    expect(page.get_by_label("Note, shown in the conversation")).to_be_focused()


def test_the_slower_reviewer_reads_who_was_first(scene: Begin, visit: Open, complaints: Complaints, reviewer: Any) -> None:
    complaints.expect("409")
    escalation = scene().asked()
    slow, fast = (visit(user, f"/escalations/{escalation}/") for user in (reviewer, person("ravi", "reviewer")))
    for page, words in ((fast, "The blue one."), (slow, "The red one.")):
        page.get_by_label("Answer the agent").fill(words)
        page.get_by_role("button", name="Send answer").click()
    expect(slow.get_by_role("alert")).to_contain_text("Ravi already answered this")
    expect(slow.get_by_text("“The blue one.”")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("kind", ["approval", "rollbacks", "asked", "payment"])
def test_nothing_sticks_out_of_the_page(scene: Begin, visit: Open, reviewer: Any, kind: str, width: int) -> None:
    long = "<b>verylongword</b>" * 12
    escalation = getattr(scene(name=long), kind)(*([long] if kind == "asked" else []))
    for path in (f"/escalations/{escalation}/", "/escalations/", "/decisions/", "/audit/", "/audit/attempts/"):
        page = visit(reviewer, path, width=width)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
