"""The chat on a running instance: the agent, the provider and two people at once."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.stack import Stack
from tests.waiting import until

Login = Callable[[Page, str], None]
Connect = Callable[[str], "psycopg.Connection[Any]"]
SOON = 30_000  # milliseconds: a loaded machine is slow, a stuck one is stuck
LATE = "2098"  # invoices of a year that no other test uses


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON)
    yield
    expect.set_options(timeout=None)


def begin(page: Page, customer: str) -> str:
    """Open a conversation about a customer and return its address."""
    page.goto(f"/conversations/new/?customer={customer.split()[0]}")
    page.get_by_role("button", name=customer).click()
    page.wait_for_url(re.compile(r"/conversations/\d+/$"))
    expect(page.locator("#live")).to_be_visible()
    return page.url


def say(page: Page, text: str) -> None:
    page.fill("#say", text)
    page.press("#say", "Enter")


def idle(page: Page) -> None:
    expect(page.locator("#working")).to_contain_text("Idle")


def test_it_tells_a_refusal_where_it_was_asked_for(page: Page, login: Login) -> None:
    login(page, "support")
    begin(page, "Fictional Freight Oy")
    say(page, f"Create an invoice for February {LATE} of €75.00 and charge it to their card")
    expect(page.locator(".fate .now")).to_contain_text("Refused: insufficient funds")
    expect(page.locator(".sys[data-state=failed]")).to_contain_text("insufficient funds")
    expect(page.locator("#customer")).to_contain_text("Refused")


def test_it_keeps_messages_in_order_while_the_agent_writes(page: Page, login: Login, stack_connect: Connect) -> None:
    login(page, "support")
    address = begin(page, "Dummy Dynamics SARL")
    say(page, "What can you do? [misbehave: slow]")
    expect(page.locator("#working")).to_contain_text("Stop")
    for text in ("How much credit do they have left?", "Hello", "Thanks"):
        say(page, text)
        expect(page.locator("#queue")).to_contain_text(text)
    waiting = page.locator("#queue li").filter(has_text="Hello")  # the second, unless the agent has taken the first meanwhile
    waiting.get_by_label("Cancel message").click()
    expect(page.locator("#queue")).not_to_contain_text("Hello")
    idle(page)
    said = page.locator(".msg.staff .body")
    expect(said).to_have_text([re.compile("What can you do"), re.compile("How much credit"), re.compile("Thanks")])
    number = address.rstrip("/").rsplit("/", 1)[1]
    states = "SELECT state FROM public.agent_staff_message m JOIN public.agent_conversation c USING (thread)"
    rows = stack_connect("owner").execute(f"{states} WHERE c.id = %s ORDER BY number", (number,)).fetchall()
    assert [row[0] for row in rows] == ["taken", "taken", "cancelled", "taken"]


def test_it_stops_the_agent_by_a_key(page: Page, login: Login) -> None:
    login(page, "support")
    begin(page, "Dummy Dynamics SARL")
    say(page, "What can you do? [misbehave: slow]")
    expect(page.locator("#draft-text")).not_to_be_empty()
    expect(page.locator("#working button")).to_contain_text("Stop")
    page.keyboard.press("Escape")
    idle(page)
    expect(page.locator(".msg.agent").last).to_contain_text("Stopped by")
    expect(page.locator("#draft")).to_be_hidden()


def test_it_goes_on_after_a_reload_and_shows_the_same_to_two_people(
    page: Page, new_page: Callable[[], Page], login: Login
) -> None:
    login(page, "support")
    address = begin(page, "Dummy Dynamics SARL")
    say(page, "What can you do? [misbehave: slow]")
    expect(page.locator("#draft-text")).not_to_be_empty()
    page.reload()
    expect(page.locator("#draft-text")).not_to_be_empty()
    other = new_page()
    login(other, "reviewer")
    other.goto(address)
    expect(other.locator("#draft-text")).not_to_be_empty()
    for reader in (page, other):
        idle(reader)
        expect(reader.locator("#draft")).to_be_hidden()
    assert page.locator(".msg.agent .words").all_inner_texts() == other.locator(".msg.agent .words").all_inner_texts()


def test_it_pauses_all_writes_for_everybody(page: Page, new_page: Callable[[], Page], login: Login) -> None:
    admin = new_page()
    login(admin, "admin")
    admin.goto("/limits/")
    admin.fill("#switch-reason", "Stripe incident")
    admin.click("text=Pause all writes")
    try:
        login(page, "support")
        begin(page, "Sample Cycles BV")
        expect(page.locator(".strip[data-state=failed]")).to_contain_text("paused all writes")
        say(page, f"Create an invoice for April {LATE} of €10.00")
        expect(page.locator("article.batch > header").first).to_contain_text("Refused")
        expect(page.locator("article.batch .why").first).to_contain_text("paused changes")
    finally:
        admin.fill("#on-reason-1", "Over")
        admin.click("text=Ask to let writes go on")
        expect(admin.locator(".asks button.primary")).to_be_disabled()
        other = new_page()
        login(other, "admin2")
        other.goto("/limits/")
        other.click(".asks >> text=Confirm")
    expect(other.locator("section:has(#switch-h) .st").first).to_contain_text("On")


def test_it_shows_the_first_word_soon(page: Page, login: Login, stack: Stack) -> None:
    login(page, "support")
    begin(page, "Sample Cycles BV")
    say(page, "Hello")  # the first one of a process opens its connections
    idle(page)
    page.evaluate(
        "window.seen = null; new MutationObserver(() => { if (document.getElementById('draft-text').textContent)"
        " window.seen ??= performance.timeOrigin + performance.now() })"
        ".observe(document.getElementById('entries'), {childList: true, subtree: true, characterData: true})"
    )
    page.fill("#say", "What can you do?")
    began = time.time() * 1000
    page.press("#say", "Enter")
    seen = until(lambda: page.evaluate("window.seen"), seconds=10, what="the first word")
    assert seen - began < 3000  # 300 on a machine that has nothing else to do
