"""What was promised can be taken back for a few seconds: the page counts them down, and a click in time is in time."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from outbox import sends_after
from tests.browser.looks import problems
from tests.browser.office import SOON, Office, Talk
from tests.waiting import until

CHARGE = "Invoice January 2095 for €25 and charge it to their card"
TOPIC = "payment.charge"


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON * 1000)
    yield
    expect.set_options(timeout=None)


def charges(office: Office, *, seconds: int) -> Talk:
    """Let a conversation promise a charge that can be taken back for so long; whatever others promise meanwhile can too."""
    pause(office, seconds)
    try:
        talk = office.ask(CHARGE)
        promised = "SELECT 1 FROM public.outbox_message WHERE thread = %s AND undo_until IS NOT NULL"
        until(lambda: office.rows(promised, talk.thread), seconds=SOON, what="the promise")
        return talk
    finally:
        pause(office, 0)


def pause(office: Office, seconds: int) -> None:
    with office.stack.connect("web") as conn:
        sends_after.set_pause(conn, topic=TOPIC, seconds=seconds, reason="A test looks.", user=1)


def test_it_is_taken_back_by_a_click_in_time(office: Office) -> None:
    talk = charges(office, seconds=60)
    page = office.staff
    page.goto(talk.path)
    button = page.get_by_role("button", name="Undo")
    expect(button).to_contain_text(" s")
    before = button.inner_text()
    expect(button).not_to_have_text(before)  # it counts
    found = problems(page, "a charge that can be taken back")

    button.dblclick()

    expect(page.locator(".batch .call").last).to_contain_text("Withdrawn")
    expect(page.locator(".sys").last).to_contain_text("withdrawn before it was sent")
    expect(button).to_have_count(0)
    assert not found, "\n".join(found)
    assert office.rows("SELECT state, sends FROM public.outbox_message WHERE thread = %s", talk.thread) == [("cancelled", 0)]
    assert office.invoices(talk) == [("draft", 2500, 2500)]


def test_the_button_goes_when_the_time_is_over(office: Office) -> None:
    talk = charges(office, seconds=8)
    page = office.staff
    page.goto(talk.path)
    button = page.get_by_role("button", name="Undo")
    expect(button).to_be_visible()

    expect(button).to_be_hidden(timeout=10_000)

    office.sent(talk)
    expect(page.locator(".batch .call").last).to_contain_text("Confirmed")
