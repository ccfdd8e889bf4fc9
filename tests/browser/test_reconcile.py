"""The reconcile desk in a browser: an answer that was lost is found at the provider and adopted, to the database's truth."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from sandbox.demo.provider import Provider
from tests.browser.looks import problems
from tests.browser.office import SOON, Office, Talk, ready
from tests.waiting import until

CHARGE = "Invoice January 2095 for €25 and charge it to their card"
MESSAGE = "SELECT id, state FROM public.outbox_message WHERE thread = %s"
GIVE_UP = """
UPDATE public.outbox_message SET state = 'dead', first_sent_at = now() - interval '1 hour', last_error = 'gave up: ReadTimeout'
WHERE id = %s AND state = 'uncertain'
"""
DONE = "SELECT 1 FROM public.escalations_escalation WHERE id = %s AND state = 'done'"


@pytest.fixture(autouse=True)
def patient(office: Office) -> Iterator[None]:
    office.complaints.expect("404")
    expect.set_options(timeout=SOON * 1000)
    yield
    expect.set_options(timeout=None)


@pytest.fixture
def provider(office: Office) -> Iterator[Provider]:
    """Return the provider's control, which tells nobody anything by itself; afterwards it is as it was."""
    found = Provider.of_instance(office.stack.data)
    assert found
    found.control("POST", "webhooks", {"action": "drop", "count": 10_000})
    yield found
    found.control("DELETE", "faults")
    found.control("POST", "webhooks", {"action": "normal"})
    found.close()


def lost(office: Office, provider: Provider) -> tuple[Talk, int]:
    """Let the answer of a charge be lost, and its message be given up before it could be looked up."""
    provider.control("POST", "faults", {"when": "after", "mode": "drop", "path": "/v1/payment_intents/[^/]+/confirm"})
    provider.control("POST", "faults", {"when": "before", "mode": "500", "method": "GET", "count": 10_000})
    talk = office.ask(CHARGE)

    def given_up() -> Any:
        for message, state in office.rows(MESSAGE, talk.thread):
            if state == "dead":
                return message
            office.by_hand(GIVE_UP, message)
        return None

    message = int(until(given_up, seconds=SOON, what="a message that was given up"))
    provider.control("DELETE", "faults")
    return talk, message


def settled(office: Office, case: int) -> None:
    """Wait until what was decided is done and compared again."""
    until(lambda: office.rows(DONE, case), seconds=SOON, what=f"the end of E-{case}")


def test_a_charge_whose_answer_was_lost_is_adopted(office: Office, provider: Provider) -> None:
    talk, message = lost(office, provider)
    page = office.page("reviewer", "/reconcile/")
    ready(page)
    page.get_by_role("button", name="Scan now").click()
    page.get_by_role("navigation", name="Disagreements").get_by_text(talk.name).click()
    case = int(page.url.rstrip("/").rpartition("/")[2])
    expect(page.locator("#case h1")).to_contain_text("We do not know whether this was carried out: charge €25.00")
    expect(page.get_by_role("radio", name="Adopt what Stripe says")).to_be_enabled()
    found = problems(page, "one disagreement")
    page.get_by_role("radio", name="Adopt what Stripe says").check()
    expect(page.get_by_role("button", name="Adopt a")).to_be_visible()
    page.keyboard.press("a")  # the reason is missing: it leads there
    page.get_by_label("Reason").fill("Found under our id; the answer was lost.")
    page.get_by_role("button", name="Adopt a").click()
    settled(office, case)
    expect(page.locator("#case")).to_contain_text("It is settled.")
    expect(page.locator("#case")).to_contain_text("The outbox worker: adopted: succeeded.")
    found += problems(page, "one that is settled")
    assert office.decision(case) == ("adopt", "reviewer", "Found under our id; the answer was lost.")
    assert office.rows("SELECT state FROM public.outbox_message WHERE id = %s", message) == [("succeeded",)]
    assert office.invoices(talk)[0][0] == "paid"
    page.goto("/reconcile/")
    page.get_by_role("button", name="Scan now").click()
    expect(page.get_by_role("button", name="Scan now")).to_be_enabled()
    expect(page.get_by_text(talk.name)).to_have_count(0)
    found += problems(page, "without it")
    found += problems(office.page("admin", "/reconcile/"), "an admin's")
    assert not found, "\n".join(found)
