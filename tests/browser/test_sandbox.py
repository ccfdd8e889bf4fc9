"""The page of the Stripe sandbox on a running instance: what is said there holds at the sandbox, and everybody can use it."""

import os
import signal
from typing import Any

import pytest
import requests
from playwright.sync_api import expect

from tests.browser.looks import problems
from tests.browser.office import Office

TABS = ("/sandbox/", "/sandbox/money/", "/sandbox/faults/", "/sandbox/webhooks/", "/sandbox/clock/")


@pytest.fixture
def admin(office: Office) -> Any:
    for noise in ("404", "503"):
        office.complaints.expect(noise)
    return office.page("admin", "/sandbox/")


def control(office: Office, path: str, *, method: str = "GET") -> Any:
    key = {"Authorization": f"Bearer {office.stack.content['stripe']['api_key']}"}
    return requests.request(method, f"{office.stack.provider}/_sandbox/{path}", headers=key, timeout=10).json()


def test_what_is_asked_there_holds_at_the_sandbox(office: Office, admin: Any) -> None:
    admin.get_by_role("link", name="Faults").click()
    admin.get_by_label("Which call").select_option("Look one object up")
    admin.get_by_label("What goes wrong").select_option("The answer ends too early")
    admin.get_by_label("How often").press("Enter")
    expect(admin.get_by_text("From now on it goes wrong.")).to_be_visible()
    assert [(rule["when"], rule["mode"]) for rule in control(office, "faults")["faults"]] == [("after", "trunc")]
    admin.get_by_role("button", name="Lift “The answer ends too early”").click()
    expect(admin.get_by_text("Nothing goes wrong")).to_be_visible()
    assert control(office, "faults")["faults"] == []

    ahead = control(office, "clock")["ahead"]
    admin.get_by_role("link", name="Clock").click()
    admin.get_by_role("button", name="+1 h").click()
    expect(admin.get_by_text("The sandbox’s clock went forward.")).to_be_visible()
    assert control(office, "clock")["ahead"] == ahead + 3600

    admin.get_by_role("link", name="Webhooks").click()
    admin.get_by_role("button", name="Pause").click()
    expect(admin.get_by_role("button", name="Resume")).to_be_visible()
    assert control(office, "webhooks?limit=1")["paused"]
    admin.get_by_role("button", name="Send as they should be").click()
    expect(admin.get_by_role("button", name="Pause")).to_be_visible()


def test_it_says_that_the_sandbox_is_away_and_goes_on_when_it_is_back(office: Office, admin: Any) -> None:
    status, number = office.stack.status(), office.stack.pid("stripe")
    assert number
    os.kill(status["supervisor"], signal.SIGSTOP)  # else it is there again before anybody looks
    try:
        os.kill(number, signal.SIGKILL)
        admin.goto("/sandbox/money/")
        expect(admin.get_by_text("The Stripe sandbox does not answer.")).to_be_visible()
    finally:
        os.kill(status["supervisor"], signal.SIGCONT)
    expect(admin.get_by_role("heading", name="Every movement")).to_be_visible(timeout=60_000)


def test_everybody_can_use_it(admin: Any) -> None:
    found = []
    for path in TABS:
        admin.goto(path)
        if path == "/sandbox/":
            admin.get_by_text("Raw object").first.click()
        found += problems(admin, path)
    assert not found, "\n".join(found)


def test_it_works_without_scripts(office: Office) -> None:
    page = office.page("admin", "/sandbox/clock/", java_script_enabled=False)
    ahead = control(office, "clock")["ahead"]
    page.get_by_label("Forward by").fill("2")
    page.get_by_label("Unit").select_option("minutes")
    page.get_by_role("button", name="Go forward").click()
    expect(page.get_by_text("went forward")).to_be_visible()
    assert control(office, "clock")["ahead"] == ahead + 120
