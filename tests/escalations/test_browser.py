"""The desk in a browser: keys, sheets, and a page that follows its decision by itself."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

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
def visit(server: Server, lend: Open) -> Open:
    """Return a function that opens a page as a person, on a desk or on a phone."""

    def open_page(user: Any, path: str, *, width: int = 1440) -> Page:
        viewport = {"width": width, "height": 844}
        page = lend(base_url=server.address, cookies=[server.cookie(user)], viewport=viewport)
        page.goto(path)
        return page

    return open_page


def scripted(page: Page) -> None:
    """Wait until the page listens to keys: only its script shows this button."""
    expect(page.get_by_role("button", name="Theme")).to_be_visible()


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
    scripted(page)
    page.keyboard.press("c")
    expect(page.get_by_text("You hold it for")).to_be_visible()
    scripted(page)
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
    made = scene(name=long)
    escalation = getattr(made, kind)(*([long] if kind == "asked" else []))
    made.previews()
    page = visit(reviewer, "/escalations/", width=width)
    for path in (
        f"/escalations/{escalation}/",
        f"/escalations/{escalation}/?edit=1",
        "/escalations/",
        "/decisions/",
        "/audit/",
        "/audit/attempts/",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_a_review_of_two_calls_takes_three_keys(scene: Begin, visit: Open, web: Any, reviewer: Any) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = visit(reviewer, "/escalations/")
    scripted(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/escalations/{escalation}/")
    scripted(page)
    page.keyboard.press("a")
    expect(page.get_by_text("Approved. The agent goes on now.")).to_be_visible()
    assert web.execute("SELECT kind, decided_by FROM public.escalations_decision").fetchone() == ("approve", reviewer.id)


def test_a_preview_appears_by_itself_and_leaves_alone_what_is_being_typed(scene: Begin, visit: Open, reviewer: Any) -> None:
    made = scene()
    page = visit(reviewer, f"/escalations/{made.approval()}/")
    approve = page.get_by_role("button", name="Approve")
    expect(page.get_by_text("The preview is being made.").first).to_be_visible()
    expect(approve).to_be_disabled()
    page.keyboard.press("r")
    details = page.get_by_label("Details for the agent and nina")
    details.fill("The log shows")
    expect(page.get_by_text("REJECTED: The log shows Nothing of this step was saved.")).to_be_visible()
    made.previews()
    expect(page.get_by_text("no errors")).to_be_attached()
    expect(details).to_have_value("The log shows")
    page.keyboard.press("Escape")
    expect(approve).to_be_enabled()


def test_a_tick_shows_what_becomes_of_the_rest(scene: Begin, visit: Open, web: Any, reviewer: Any) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = visit(reviewer, f"/escalations/{escalation}/")
    scripted(page)
    page.get_by_role("checkbox", name="2 · Issue a credit memo").uncheck()
    expect(page.get_by_text("You changed the calls").first).to_be_visible()
    made.previews()
    expect(page.get_by_text("1 row changes, nothing leaves.")).to_be_visible()
    page.get_by_role("checkbox", name="2 · Issue a credit memo").check()
    expect(page.get_by_text("Commits 2 of 2.")).to_be_visible()
    made.previews()
    expect(page.get_by_text("4 rows change, nothing leaves.")).to_be_visible()


def test_an_edit_goes_by_keys_and_fields(scene: Begin, visit: Open, complaints: Complaints, web: Any, reviewer: Any) -> None:
    complaints.expect("422")
    made = scene()
    escalation = made.approval()
    made.previews()
    page = visit(reviewer, f"/escalations/{escalation}/")
    scripted(page)
    page.keyboard.press("e")
    amount = page.get_by_label("Amount").nth(1)
    amount.fill("68o")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.get_by_label("Amount").nth(1)).to_have_accessible_description(re.compile("is not an amount in EUR"))
    expect(page.get_by_label("Amount").nth(1)).to_have_value("68o")
    page.get_by_label("Amount").nth(1).fill("280.00")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.get_by_text("The preview is being made.").first).to_be_visible()
    made.previews()
    expect(page.get_by_text("No rule holds what is proposed now.")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Approved. The agent goes on now.")).to_be_visible()
    assert web.execute(
        "SELECT r.number FROM public.escalations_decision d JOIN public.escalations_revision r ON r.id = d.revision_id"
    ).fetchone() == (1,)
