"""The chat in a browser: what is written appears by itself, nothing typed is lost, and the reader's place is kept."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, Request, Route, expect

from agent import events
from tests.agent.scenes import Scene
from tests.agent.serving import Server, serving
from tests.agent.test_cards import CHARGE, CREATE, CREDIT, TOO_MUCH, held
from tests.agent.test_pages import PAYLOADS
from tests.browser.looks import problems
from tests.pages import Complaints, profile
from tests.waiting import until

Open = Callable[..., Page]
PHONE = {"width": 390, "height": 844}
LONG = "\n".join(f"line {number}" for number in range(12))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a web process on the test's database."""
    with serving() as started:
        yield started


@pytest.fixture
def visit(server: Server, lend: Open, scene: Scene) -> Open:
    """Return a function that opens a page as a person; without one as the scene's staff member."""

    def open_page(path: str = "", *, user: Any = None, **options: Any) -> Page:
        wanted = {"base_url": server.address, "viewport": {"width": 1440, "height": 900}} | options
        page = lend(cookies=[server.cookie(user or scene.staff)], **wanted)
        page.goto(path or f"/conversations/{scene.conversation.pk}/")
        return page

    return open_page


def live(page: Page) -> Page:
    """Return the page when its stream is open."""
    expect(page.locator("#live")).to_be_visible()
    return page


def publish(scene: Scene, text: str) -> None:
    """Let the agent write, to whoever listens by now."""
    until(lambda: events.broker().pubsub_numsub(events.channel(scene.desk.thread))[0][1])
    events.publish(scene.desk.thread, "draft", text=text)


# -- writing -----------------------------------------------------------------------------------------


def test_it_sends_with_enter_and_begins_a_line_with_shift_enter(visit: Open, scene: Scene) -> None:
    page = live(visit())
    page.keyboard.type("First")  # the composer has the focus
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second")
    page.keyboard.press("Enter")
    expect(page.locator("#entries")).to_contain_text("First\nsecond")
    expect(page.locator("#say")).to_have_value("")
    text = "SELECT text FROM public.agent_staff_message"
    assert until(lambda: scene.desk.scalar(text)) == "First\nsecond"
    page.keyboard.type("Another")
    page.keyboard.press("Enter")
    expect(page.locator("#queue")).to_contain_text("Another")


def test_it_sends_a_message_once_however_often_enter_is_hit(visit: Open, scene: Scene) -> None:
    page = live(visit())
    page.fill("#say", "Once")
    page.evaluate("for (let i = 0; i < 5; i++) document.getElementById('composer').requestSubmit()")
    expect(page.locator("#entries")).to_contain_text("Once")
    until(lambda: scene.desk.count("agent_staff_message"))
    page.reload()
    assert scene.desk.count("agent_staff_message") == 1


def test_it_takes_messages_as_fast_as_they_are_typed(visit: Open, scene: Scene) -> None:
    page = live(visit())
    written = [f"message {number}" for number in range(6)]
    for text in written:
        page.fill("#say", text)
        page.press("#say", "Enter")
    page.fill("#say", "unfinished")
    until(lambda: scene.desk.count("agent_staff_message") == 6)
    stored = scene.desk.owner.execute("SELECT text FROM public.agent_staff_message ORDER BY number").fetchall()
    assert [row[0] for row in stored] == written
    expect(page.locator("#queue")).to_contain_text("message 5")
    expect(page.locator("#say")).to_have_value("unfinished")


def test_it_keeps_what_was_typed_over_a_reload_and_a_refusal(visit: Open, scene: Scene, complaints: Complaints) -> None:
    complaints.expect("422")
    page = live(visit())
    page.fill("#say", "card 4242 4242 4242 4242")
    page.reload()
    expect(page.locator("#say")).to_have_value("card 4242 4242 4242 4242")
    page.press("#say", "Enter")
    expect(page.locator("#say-error")).to_contain_text("looks like a card number")
    expect(page.locator("#say")).to_have_value("card 4242 4242 4242 4242")
    page.fill("#say", "the last digits are 4242")
    page.press("#say", "Enter")
    expect(page.locator("#say")).to_have_value("")
    expect(page.locator("#say-error")).to_be_empty()
    until(lambda: scene.desk.count("agent_staff_message"))
    page.reload()
    expect(page.locator("#say")).to_have_value("")


def test_it_sends_again_what_may_not_have_arrived_as_the_same_message(visit: Open, scene: Scene, complaints: Complaints) -> None:
    complaints.expect("ERR_FAILED")
    page = live(visit())
    page.route("**/feed/**", lambda route: route.abort())  # nor is it seen in the feed, which would be an answer too
    page.route("**/send/", lambda route: (route.fetch(), route.abort()))  # it arrives, its answer does not
    page.fill("#say", "Once")
    page.press("#say", "Enter")
    expect(page.locator("#say-error")).to_contain_text("could not be reached")
    expect(page.locator("#say")).to_have_value("Once")
    page.unroute("**/send/")
    page.unroute("**/feed/**")
    page.press("#say", "Enter")
    expect(page.locator("#say-error")).to_be_empty()
    expect(page.locator("#entries")).to_contain_text("Once")
    assert scene.desk.count("agent_staff_message") == 1


def test_it_keeps_what_is_typed_while_the_page_changes(visit: Open, scene: Scene) -> None:
    page = live(visit())
    page.keyboard.type("Half a sent")
    scene.says("Said meanwhile")
    scene.stands("running", activity="Writing")
    scene.emits()
    expect(page.locator("#entries")).to_contain_text("Said meanwhile")
    page.keyboard.type("ence")
    expect(page.locator("#say")).to_have_value("Half a sentence")
    expect(page.locator("#send")).to_contain_text("Add to queue")


def test_it_works_without_script(visit: Open, scene: Scene) -> None:
    page = visit(java_script_enabled=False)
    page.fill("#say", "Hello")
    page.click("#send")
    expect(page.locator("#entries")).to_contain_text("Hello")
    waiting = scene.queued("Later")
    scene.stands("running", activity="Writing")
    page.reload()
    page.click("[aria-label='Edit message 2']")
    page.fill(f"#text-{waiting}", "Later, please")
    page.click(f"#edit-{waiting} >> text=Save the message")
    expect(page.locator("#queue")).to_contain_text("Later, please")
    page.click("[aria-label='Cancel message 2']")
    expect(page.locator("#queue")).not_to_contain_text("Later")
    page.click("#working button")
    expect(page.locator("#working")).to_contain_text("Stopping")


# -- reading -----------------------------------------------------------------------------------------


def test_it_shows_the_text_as_it_grows_and_then_the_message(visit: Open, scene: Scene) -> None:
    scene.says("Hello")
    page = live(visit())
    for text in ("I", "I am <b>here</b>", "I am <b>here</b>\nand there"):
        publish(scene, text)
        expect(page.locator("#draft-text")).to_have_text(text)
    scene.answers("I am <b>here</b>\nand there")
    scene.emits()
    expect(page.locator(".msg.agent")).to_contain_text("and there")
    expect(page.locator("#draft")).to_be_hidden()


def test_it_goes_on_after_a_reload_in_the_middle_of_a_sentence(visit: Open, scene: Scene) -> None:
    scene.says("Hello")
    scene.drafts("I will")
    page = live(visit())
    expect(page.locator("#draft-text")).to_have_text("I will")
    publish(scene, "I will look")
    expect(page.locator("#draft-text")).to_have_text("I will look")
    with page.expect_response(lambda response: "/feed/" in response.url):
        scene.emits("status")  # the row is behind what was streamed: nothing is written backwards
    expect(page.locator("#draft-text")).to_have_text("I will look")


def test_an_answer_that_knew_of_no_text_yet_does_not_hide_it(visit: Open, scene: Scene) -> None:
    def answer_late(route: Route) -> None:
        answer = route.fetch()
        publish(scene, "I will look")
        expect(page.locator("#draft-text")).to_have_text("I will look")
        route.fulfill(response=answer)

    page = live(visit())
    page.route("**/send/", answer_late)
    page.fill("#say", "Hello")
    with page.expect_response("**/send/"):
        page.press("#say", "Enter")
    expect(page.locator(".msg.staff time")).to_be_visible()  # the answer was taken over
    expect(page.locator("#draft")).to_be_visible()
    expect(page.locator("#draft-text")).to_have_text("I will look")


def test_it_keeps_the_readers_place(visit: Open, scene: Scene) -> None:
    for number in range(10):
        scene.says(f"question {number}\n{LONG}")
    page = live(visit())
    place = page.locator(".msg.staff").nth(3)
    place.scroll_into_view_if_needed()
    before = place.bounding_box()
    for number in range(3):
        scene.says(f"more {number}\n{LONG}")
        scene.emits()
        expect(page.locator("#entries")).to_contain_text(f"more {number}")
        publish(scene, LONG * (number + 1))
        expect(page.locator("#draft-text")).to_contain_text("line 11")
    after = place.bounding_box()
    assert before and after
    assert abs(before["y"] - after["y"]) <= 1


def test_it_stays_at_the_end_for_who_reads_the_end(visit: Open, scene: Scene) -> None:
    for number in range(10):
        scene.says(f"question {number}\n{LONG}")
    page = live(visit())
    scene.says("the newest")
    scene.emits()
    expect(page.locator(".msg.staff", has_text="the newest")).to_be_in_viewport()
    publish(scene, LONG)
    expect(page.locator("#draft")).to_be_in_viewport()


def test_it_leaves_open_what_was_opened(visit: Open, scene: Scene) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, CREDIT, CHARGE)
    page = live(visit())
    page.click("summary:has-text('Arguments')")
    scene.settles("succeeded")
    scene.emits()
    expect(page.locator(".st[data-state=confirmed]").first).to_be_visible()
    expect(page.locator("pre.args")).to_be_visible()


def test_it_shows_how_the_other_conversations_stand(visit: Open, scene: Scene, owner: Any) -> None:
    other = scene.conversation.__class__.objects.create(subject=scene.desk.customer, created_by=scene.staff)
    page = visit(again=False)
    page.clock.install()
    page.reload()
    line = page.locator(f"#conv-{other.pk}")
    expect(line).to_contain_text("Nothing was said yet")
    owner.execute("INSERT INTO public.agent_thread (thread, state, activity) VALUES (%s, 'running', 'Writing')", (other.thread,))
    page.clock.fast_forward(21_000)
    expect(line).to_contain_text("Writing")
    expect(page.locator(f"#conv-{scene.conversation.pk}")).to_have_attribute("aria-current", "page")


def test_it_says_that_it_is_not_live_and_comes_back(scene: Scene, browser: Browser) -> None:
    with serving() as first:
        context = profile(browser, base_url=first.address)
        context.add_cookies([first.cookie(scene.staff)])
        page = context.new_page()
        page.goto(f"/conversations/{scene.conversation.pk}/")
        live(page).fill("#say", "not lost")
        first.stop()
        expect(page.locator("#lost")).to_be_visible(timeout=10_000)
        page.press("#say", "Enter")
        expect(page.locator("#say-error")).to_contain_text("could not be reached")
    port = int(first.address.rpartition(":")[2])
    scene.says("said while it was away")
    with serving(port=port):
        expect(page.locator("#entries")).to_contain_text("said while it was away", timeout=15_000)
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator("#say")).to_have_value("not lost")
        page.press("#say", "Enter")
        expect(page.locator("#say")).to_have_value("")
    context.close()


def test_it_says_that_the_session_is_over(visit: Open, scene: Scene, owner: Any) -> None:
    page = live(visit())
    page.fill("#say", "kept")
    owner.execute("DELETE FROM public.django_session")
    page.press("#say", "Enter")
    expect(page.locator("#ended")).to_be_visible()
    expect(page.locator("#say")).to_have_value("kept")


# -- keys, phone, access -----------------------------------------------------------------------------


def test_it_is_worked_by_keys(visit: Open, scene: Scene) -> None:
    other = scene.conversation.__class__.objects.create(subject=scene.desk.customer, created_by=scene.staff)
    scene.says("Hello")
    scene.stands("running", activity="Writing")
    page = live(visit())
    page.locator("#say").blur()
    page.keyboard.press("/")
    expect(page.locator("#cq")).to_be_focused()
    page.locator("#cq").blur()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")  # closes the list, and stops nothing
    expect(page.locator("#keys")).to_be_hidden()
    assert scene.desk.count("agent_thread", "stop_requested_at IS NOT NULL") == 0
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(page.locator(f"#conv-{other.pk}")).to_be_focused()
    page.locator("#say").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#working")).to_contain_text("Stopping")
    page.locator(f"#conv-{other.pk}").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/conversations/{other.pk}/**")


def test_it_fits_a_phone(visit: Open, scene: Scene) -> None:
    scene.says("Invoice November. " + "x" * 300)
    scene.runs(CREATE, TOO_MUCH, CHARGE)
    page = live(visit(viewport=PHONE))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(page.locator("#convs")).to_be_hidden()
    page.click("[aria-label='All conversations']")
    expect(page.locator("#convs")).to_be_visible()
    page.click("[aria-label='Close the list']")
    page.click("[aria-label='Customer details']")
    expect(page.locator("#customer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#customer")).to_be_hidden()
    page.goto("/conversations/")
    expect(page.locator(f"#conv-{scene.conversation.pk}")).to_be_visible()


def test_it_can_be_read_by_everybody(visit: Open, scene: Scene) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, TOO_MUCH, CHARGE)
    scene.notice("Refused: insufficient funds")
    scene.runs(CREATE, CREDIT, CHARGE)
    scene.settles("uncertain", sending_at="now()")
    scene.queued("Later"), scene.queued("Later still")
    assert problems(visit(), "chat") == []


def test_it_says_politely_how_it_stands(visit: Open, scene: Scene) -> None:
    page = live(visit())
    expect(page.locator("#said[role=status][aria-live=polite]")).to_have_text("The agent is idle.")
    held(scene)
    scene.stands("waiting")
    scene.emits("escalation")
    expect(page.locator("#said")).to_contain_text("Waiting for a reviewer.")


@pytest.mark.parametrize("text", PAYLOADS)
def test_it_runs_nothing_and_fetches_nothing_that_was_said(visit: Open, scene: Scene, text: str) -> None:
    asked: list[str] = []

    def opens(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    def fetches(request: Request) -> None:
        asked.append(request.url)

    scene.says(text)
    page = visit("/conversations/")
    page.on("dialog", opens)
    page.on("request", fetches)
    page.goto(f"/conversations/{scene.conversation.pk}/")
    publish(scene, text)
    expect(page.locator("#draft-text")).to_have_text(text)
    scene.answers(text)
    scene.emits()
    expect(page.locator(".msg.agent")).to_contain_text(text.strip())
    page.remove_listener("dialog", opens)
    page.remove_listener("request", fetches)
    assert [url for url in asked if not url.startswith(page.url.split("/conversations")[0])] == []


def test_it_shows_the_first_word_within_a_moment(visit: Open, scene: Scene) -> None:
    page = live(visit())
    page.evaluate(
        "new MutationObserver(() => { window.seen ??= performance.timeOrigin + performance.now() })"
        ".observe(document.getElementById('draft-text'), {childList: true})"
    )
    began = time.time() * 1000
    publish(scene, "Hello")
    expect(page.locator("#draft-text")).to_have_text("Hello")
    assert page.evaluate("window.seen") - began < 300
