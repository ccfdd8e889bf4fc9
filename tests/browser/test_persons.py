"""People between the staff member and the agent, on a running instance: a request taken back, and somebody who steps in."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_chat import begin, idle, say

Login = Callable[[Page, str], None]
Connect = Callable[[str], "psycopg.Connection[Any]"]
SOON = 30_000  # milliseconds
LATE = "2097"  # invoices of a year that no other test uses
DECIDED = """
SELECT d.kind, d.text, u.username, e.state FROM public.escalations_decision d
JOIN public.escalations_escalation e ON e.id = d.escalation_id
JOIN public.agent_conversation c ON c.thread = e.thread JOIN public.auth_user u ON u.id = d.decided_by WHERE c.id = %s
"""
RAN = """
SELECT count(*) FROM public.ledger_execution x JOIN public.agent_conversation c USING (thread) WHERE c.id = %s AND x.tool = %s
"""
PERSON = """
SELECT u.username FROM public.agent_conversation c JOIN public.agent_thread t USING (thread)
LEFT JOIN public.auth_user u ON u.id = t.stepped_in_by WHERE c.id = %s
"""
TOLD = """
SELECT n.text, u.username, m.text FROM public.agent_conversation c JOIN public.agent_notice n USING (thread)
JOIN public.auth_user u ON u.id = n.author LEFT JOIN public.agent_staff_message m ON m.id = n.told_in
WHERE c.id = %s AND n.kind = 'person_said'
"""


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON)
    yield
    expect.set_options(timeout=None)


def number_of(address: str) -> str:
    return address.rstrip("/").rsplit("/", 1)[1]


def test_a_request_that_waits_is_withdrawn(
    page: Page, new_page: Callable[[], Page], login: Login, stack_connect: Connect
) -> None:
    login(page, "support")
    number = number_of(begin(page, "Sample Cycles BV"))
    say(page, f"Create an invoice for March {LATE} of €900.00")
    idle(page)
    say(page, f"Issue a credit memo of €600.00 on the March {LATE} invoice because of the outage")
    expect(page.locator("#working")).to_contain_text("Waits for a reviewer since")
    card = page.locator("article.batch").last
    expect(card).to_contain_text("Without a decision it expires")
    reviewer = new_page()
    login(reviewer, "reviewer")
    reviewer.goto(page.url)
    reviewer.get_by_role("link", name="Open in the inbox").click()
    expect(page.locator("#working")).to_contain_text("reviewer is looking")
    say(page, "Then say hello")
    expect(page.locator("#queue")).to_contain_text("1 message waits for the decision")
    page.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_role("dialog", name="Withdraw the request")).to_contain_text("Nothing that waits for them runs")
    page.get_by_label("Reason").fill("They changed their mind")
    page.get_by_role("button", name="Withdraw the request").click()
    expect(card.locator("header b")).to_have_text("Withdrawn")
    expect(page.locator("li.sys").last).to_contain_text("support withdrew the request: “They changed their mind”")
    idle(page)
    expect(page.locator(".msg.staff .body").last).to_have_text("Then say hello")
    owner = stack_connect("owner")
    assert owner.execute(DECIDED, (number,)).fetchall() == [("withdraw", "They changed their mind", "support", "done")]
    assert owner.execute(RAN, (number, "IssueCreditMemo")).fetchone() == (0,)


def test_a_person_steps_in_answers_and_hands_back(
    page: Page, new_page: Callable[[], Page], login: Login, stack_connect: Connect
) -> None:
    login(page, "support")
    address = begin(page, "Dummy Dynamics SARL")
    number, owner = number_of(address), stack_connect("owner")
    say(page, "What can you do? [misbehave: slow]")
    expect(page.locator("#draft-text")).not_to_be_empty()
    other = new_page()
    login(other, "reviewer")
    other.goto(address)
    other.get_by_role("button", name="Step in", exact=True).click()
    other.get_by_role("dialog", name="Step in for the agent").get_by_role("button", name="Step in").click()
    for reader in (page, other):
        expect(reader.locator("#working")).to_contain_text(re.compile(r"reviewer stepped in at \d\d:\d\d"))
        expect(reader.locator(".msg.agent").last).to_contain_text("Stopped by reviewer, who stepped in.")
    assert owner.execute(PERSON, (number,)).fetchone() == ("reviewer",)
    say(page, "How much credit do they have left?")
    expect(page.locator("#queue")).to_contain_text("1 message waits for the hand-back")
    say(other, "I called them: €5.00 were promised.")
    expect(page.locator(".msg.person .body")).to_have_text("I called them: €5.00 were promised.")
    expect(page.locator(".msg.person .by")).to_contain_text("reviewer instead of the agent")
    other.get_by_role("button", name="Hand back").click()
    expect(page.locator(".msg.agent").last).to_contain_text("credit")
    idle(page)
    expect(other.locator("#composer")).to_have_count(0)
    assert owner.execute(PERSON, (number,)).fetchone() == (None,)
    told = [("I called them: €5.00 were promised.", "reviewer", "How much credit do they have left?")]
    assert owner.execute(TOLD, (number,)).fetchall() == told
