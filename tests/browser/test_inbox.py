"""The inbox in a browser: keys, the tray, a list that follows by itself, two reviewers at once, and whoever has no script."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from escalations import lifecycle, presence
from tests.agent.serving import Server, serving
from tests.browser.looks import problems
from tests.escalations.questions import ask, row, show
from tests.escalations.scenes import person
from tests.stack import Complaints

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a web process on the test's database."""
    with serving() as started:
        yield started


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Give a busy machine its time."""
    expect.set_options(timeout=15_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def visit(server: Server, lend: Open) -> Open:
    """Return a function that opens the inbox as a person."""

    def open_page(
        name: str = "priya", path: str = "/escalations/", *, role: str = "reviewer", width: int = 1440, **more: Any
    ) -> Page:
        viewport = {"width": width, "height": 844}
        page = lend(base_url=server.address, cookies=[server.cookie(person(name, role))], viewport=viewport, **more)
        page.goto("/escalations/")
        if more.get("java_script_enabled", True):
            expect(page.locator("#live")).to_be_visible()  # from here on it listens to keys
        return page

    return open_page


def line(page: Page, escalation: int) -> Any:
    return page.locator(f"#e-{escalation}")


@pytest.fixture
def held(database: None, agent: Any) -> list[int]:
    """Return three held batches with clean previews, the most urgent first."""
    person("priya", "reviewer")
    found = [ask(agent, kind="approval") for _ in range(3)]
    for escalation in found:
        show(agent, escalation)
    return found


def test_three_are_approved_without_the_mouse(held: list[int], visit: Open, web: Any) -> None:
    page = visit()
    for _ in held:
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.locator("#tray li")).to_have_count(3)
    page.keyboard.press("a")
    approve = page.get_by_role("button", name="Approve 3")
    expect(approve).to_be_focused()  # nothing was decided by one key
    assert web.execute("SELECT count(*) FROM public.escalations_decision").fetchone() == (0,)
    page.keyboard.press("Enter")
    expect(page.locator("#results")).to_contain_text("Approve: done for all 3.")
    expect(page.locator("[data-row]")).to_have_count(0)
    expect(page.locator("#tray li")).to_have_count(0)
    kinds = web.execute("SELECT escalation_id, kind FROM public.escalations_decision ORDER BY 1").fetchall()
    assert kinds == [(escalation, "approve") for escalation in held]


def test_keys_move_open_claim_search_and_are_off_while_typing(held: list[int], visit: Open, web: Any) -> None:
    page = visit()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(f"#a-{held[0]}")).to_be_focused()
    page.keyboard.press("c")
    expect(line(page, held[0])).to_contain_text("You")
    expect(page.locator(f"#a-{held[0]}")).to_be_focused()
    page.keyboard.press("c")
    expect(line(page, held[0])).to_contain_text("Unclaimed")
    page.keyboard.press("/")
    expect(page.get_by_label("Search the inbox")).to_be_focused()
    page.keyboard.type("jkxc?")
    expect(page.get_by_label("Search the inbox")).to_have_value("jkxc?")
    assert row(web, held[0]) == "open"
    page.get_by_role("heading", name="Inbox").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/escalations/{held[1]}/")


def test_somebody_elses_claim_is_not_taken_by_one_key(held: list[int], visit: Open, web: Any) -> None:
    lifecycle.claim(web, escalation=held[0], user=person("ravi", "reviewer").id)
    page = visit()
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name=f"Claim E-{held[0]} from ravi")).to_be_focused()
    assert row(web, held[0], "claimed_by") == person("ravi").id
    page.keyboard.press("Enter")
    expect(line(page, held[0])).to_contain_text("You")
    assert row(web, held[0], "claimed_by") == person("priya").id


def test_the_list_follows_by_itself_and_leaves_the_reader_alone(held: list[int], visit: Open, agent: Any, web: Any) -> None:
    page = visit()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#tray li")).to_have_count(1)
    new = ask(agent, kind="approval")
    ravi = person("ravi", "reviewer").id
    lifecycle.decide(web, escalation=held[1], kind="reject", text="No.", user=ravi)
    presence.see(web, escalation=held[2], user=ravi)
    expect(line(page, new)).to_be_visible()
    expect(line(page, held[1])).to_have_count(0)
    expect(line(page, held[2])).to_contain_text("ravi looking")
    expect(page.locator("#counts")).to_have_text("3 escalations in this view.")
    expect(page.locator(f"#s-{held[0]}")).to_be_checked()
    expect(page.locator(f"#a-{held[0]}")).to_be_focused()
    expect(page.locator(".item.cursor")).to_have_id(f"e-{held[0]}")


def test_the_tray_says_that_it_is_out_of_date_and_the_server_agrees(
    held: list[int], visit: Open, agent: Any, web: Any, complaints: Complaints
) -> None:
    complaints.expect("409")
    page = visit()
    page.locator(f"#s-{held[0]}").check()
    approve = page.get_by_role("button", name="Approve 1")
    expect(approve).to_be_visible()
    show(agent, held[0], digest=b"moved")
    expect(page.get_by_text("Changed since you looked.")).to_be_visible()
    approve.click()
    expect(page.locator("#results")).to_contain_text("The proposal or its preview changed since you looked. Nothing was decided.")
    assert row(web, held[0]) == "open"


def test_the_slower_of_two_reads_who_was_first(held: list[int], visit: Open, complaints: Complaints, web: Any) -> None:
    complaints.expect("409")
    slow, fast = visit("priya"), visit("ravi")
    for page in (slow, fast):
        page.locator(f"#s-{held[0]}").check()
        expect(page.get_by_role("button", name="Approve 1")).to_be_visible()
    fast.get_by_role("button", name="Approve 1").click()
    expect(fast.locator("#results")).to_contain_text("done for 1")
    slow.get_by_role("button", name="Approve 1").click()
    expect(slow.locator("#results")).to_contain_text("Ravi already approved it")
    assert web.execute("SELECT count(*) FROM public.escalations_signature").fetchone() == (1,)


def test_several_are_rejected_for_one_reason(held: list[int], visit: Open, web: Any, complaints: Complaints) -> None:
    complaints.expect("422")
    page = visit()
    for escalation in held[:2]:
        page.locator(f"#s-{escalation}").check()
    expect(page.locator("#tray li")).to_have_count(2)
    page.keyboard.press("r")
    page.get_by_role("button", name="Reject 2").last.click()  # without a reason
    details = page.get_by_label("Details for the agent and whoever asked")
    expect(details).to_have_accessible_description(
        "Nothing was done. Give a reason: the agent and the staff member will read it."
    )
    details.fill("It is August's.")
    page.get_by_role("button", name="Reject 2").last.click()
    expect(page.locator("#results")).to_contain_text("Reject: done for all 2.")
    texts = web.execute("SELECT DISTINCT kind, text FROM public.escalations_decision").fetchall()
    assert texts == [("reject", "It is August's.")]


def test_escape_selects_nothing(held: list[int], visit: Open) -> None:
    page = visit()
    page.locator(f"#s-{held[0]}").check()
    expect(page.locator("#tray li")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#tray li")).to_have_count(0)
    expect(page.locator(f"#s-{held[0]}")).not_to_be_checked()


def test_it_works_without_script(held: list[int], visit: Open, web: Any) -> None:
    page = visit(java_script_enabled=False)
    page.locator(f"#s-{held[0]}").check()
    page.get_by_role("button", name="Show what is selected").click()
    page.get_by_role("button", name="Approve 1").click()
    expect(page.locator("#results")).to_contain_text("done for 1")
    assert row(web, held[0]) == "decided"
    line(page, held[1]).hover()
    page.get_by_role("button", name=f"Claim E-{held[1]}").click()
    assert row(web, held[1], "claimed_by") == person("priya").id


def test_everybody_can_use_it(held: list[int], agent: Any, web: Any, visit: Open) -> None:
    ask(agent, kind="asked")
    ask(agent, kind="rollbacks")
    lifecycle.claim(web, escalation=held[2], user=person("ravi", "reviewer").id)
    page = visit()
    found = problems(page, "all that waits")
    page.locator(f"#s-{held[0]}").check()
    expect(page.locator("#tray li")).to_have_count(1)
    page.keyboard.press("r")
    expect(page.locator("#sheet-reject")).to_be_visible()
    found += problems(page, "what is selected, and its sheet")
    assert found == []
