"""Decisions that let calls run, in a browser, each to the database's truth: as they are, changed, cut, and by a person."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.office import SOON, Office, Talk, ready

BOTH = "Invoice January 2095 for €1,500 and use €1,200 of their credit on it"  # the second call is above its limit
TWO = ["CreateInvoice", "ApplyCredit"]


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON * 1000)
    yield
    expect.set_options(timeout=None)


def press(page: Page, *keys: str) -> int:
    """Press keys and return how many."""
    for key in keys:
        page.keyboard.press(key)
    return len(keys)


def chat(office: Office, talk: Talk) -> Page:
    """Return the staff's page of a conversation."""
    office.staff.goto(talk.path)
    return office.staff


def test_two_calls_are_reviewed_and_approved_by_three_keys(office: Office) -> None:
    talk = office.ask("Invoice January 2095 for €5,500 and charge it to their card")
    case = office.case(talk)
    page = office.page("reviewer", f"/escalations/?customer={talk.customer}")
    expect(page.locator("#live")).to_be_visible()
    keys = press(page, "j", "Enter")
    page.wait_for_url(f"**/escalations/{case}/**")
    ready(page)
    expect(page.locator("#verbs")).to_contain_text("1 message leaves for Stripe")
    assert office.executed(talk) == []
    keys += press(page, "a")
    expect(page.locator("#result")).to_contain_text("Approved")
    assert keys <= 3
    office.ends(case)
    assert office.decision(case) == ("approve", "reviewer", "")
    assert office.executed(talk) == [("CreateInvoice", None), ("QueueCharge", None)]
    assert office.invoices(talk)[0][1] == 550_000
    expect(chat(office, talk).locator("article.batch").last).to_contain_text("Approved by reviewer")
    expect(office.staff.locator('article.batch .st[data-state="confirmed"]')).to_have_count(1)
    sent = office.rows("SELECT topic, state FROM public.outbox_message WHERE thread = %s", talk.thread)
    assert sent == [("payment.charge", "succeeded")]


def test_an_editor_signs_alone_what_only_lowers_and_no_rule_holds(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    office.complaints.expect("422")
    page = office.open("reviewer", case)
    page.keyboard.press("e")
    amount = page.get_by_label("Amount").nth(1)
    amount.fill("8oo")
    page.get_by_role("button", name="Preview edit").click()
    expect(amount).to_have_accessible_description(re.compile("'8oo' is not an amount in EUR"))
    assert office.rows("SELECT max(number) FROM public.escalations_revision WHERE escalation_id = %s", case) == [(0,)]
    amount.fill("800.00")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.get_by_text("No rule holds what is proposed now.")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#result")).to_contain_text("Approved")
    office.ends(case)
    assert office.decision(case) == ("approve", "reviewer", "")
    assert signatures(office, case) == [(1, True, "reviewer", "reviewer")]
    assert office.executed(talk) == [(tool, None) for tool in TWO]
    assert office.invoices(talk) == [("draft", 150_000, 70_000)]
    assert office.balance(talk) == 420_000
    assert office.told(talk)[-1].startswith("APPLIED AS CHANGED BY A REVIEWER (amount_minor: 120000 → 80000): {")
    expect(chat(office, talk).locator("article.batch").last).to_contain_text("€800.00")


def test_what_was_raised_is_signed_by_another_reviewer(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.keyboard.press("e")
    page.get_by_label("Amount").nth(1).fill("1300")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.locator("#verbs")).to_contain_text("You changed it, so another reviewer signs.")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    other = office.open("reviewer2", case)
    expect(other.locator("#verbs")).to_contain_text("Approve: ")
    other.keyboard.press("a")
    expect(other.locator("#result")).to_contain_text("Approved")
    office.ends(case)
    assert office.decision(case) == ("approve", "reviewer2", "")
    assert signatures(office, case) == [(1, False, "reviewer", "reviewer2")]
    assert office.executed(talk) == [(tool, None) for tool in TWO]
    assert office.balance(talk) == 370_000


def test_a_call_is_dropped_and_the_rest_runs_without_it(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    page = office.open("reviewer", case)
    expect(page.locator("#proof")).to_contain_text("Commits 2 of 2.")
    page.locator("#keep-1").uncheck()
    expect(page.locator("#proof")).to_contain_text("Commits 1 of 2.")
    expect(page.locator("#verbs")).to_contain_text("1 row changes, nothing leaves.")
    page.keyboard.press("a")
    expect(page.locator("#result")).to_contain_text("Approved")
    office.ends(case)
    assert office.executed(talk) == [("CreateInvoice", None)]
    assert office.balance(talk) == 500_000
    assert office.invoices(talk) == [("draft", 150_000, 150_000)]
    assert "NOT APPLIED: a reviewer removed this call." in office.told(talk)[-1]
    expect(chat(office, talk).locator("article.batch").last).to_contain_text("Removed by reviewer")


def test_a_person_takes_the_calls_over_and_another_signs(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.keyboard.press("t")
    page.get_by_label("Why, for the record and the agent").fill("I promised it on the phone.")
    page.get_by_role("button", name="Take over and preview").click()
    expect(page.locator("#verbs")).to_contain_text("You take it over, so another reviewer signs.")
    other = office.open("reviewer2", case)
    expect(other.locator("#verbs")).to_contain_text("Reviewer performs it, not the agent.")
    other.get_by_role("button", name="Perform it").click()
    expect(other.locator("#result")).to_contain_text("Taken over")
    office.ends(case)
    assert office.decision(case)[:2] == ("take_over", "reviewer2")
    assert office.executed(talk) == [(tool, "reviewer") for tool in TWO]
    attempts = "SELECT DISTINCT u.username FROM public.ledger_attempt a JOIN public.auth_user u ON u.id = a.performed_by"
    assert office.rows(f"{attempts} WHERE a.thread = %s", talk.thread) == [("reviewer",)]
    assert office.told(talk)[-1].startswith("APPLIED BY A PERSON: {")
    expect(chat(office, talk).locator("article.batch").last).to_contain_text("By reviewer, instead of the agent.")


def test_two_reviewers_sign_what_is_above_the_second_limit(office: Office) -> None:
    talk = office.ask("Invoice January 2095 for €3,000 and issue a credit memo of €2,600 for January 2095 because of the outage")
    case = office.case(talk)
    page = office.open("reviewer", case)
    expect(page.locator("#verbs")).to_contain_text("2 reviewers have to sign and you are the first: nothing runs yet.")
    page.get_by_role("button", name="Sign, 1 of 2").click()
    expect(page.locator("#aside")).to_contain_text("1 of 2 reviewers signed.")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    assert office.executed(talk) == []
    expect(chat(office, talk).locator("article.batch").last).to_contain_text("1 of 2")
    other = office.open("reviewer2", case)
    expect(other.locator("#verbs")).to_contain_text("Yours is the last signature.")
    other.keyboard.press("a")
    expect(other.locator("#result")).to_contain_text("Approved")
    office.ends(case)
    assert [row[3] for row in signatures(office, case)] == ["reviewer", "reviewer2"]
    assert office.executed(talk) == [("CreateInvoice", None), ("IssueCreditMemo", None)]
    assert office.balance(talk) == 760_000


def test_what_changed_by_hand_since_the_preview_stops_the_approved_and_is_asked_again(office: Office) -> None:
    talk = office.ask("Invoice January 2095 for €1,500")
    office.idle(talk)
    office.say(talk, "Use €1,200 of their credit on January 2095")
    case = office.case(talk)
    page = office.open("reviewer", case)
    expect(page.locator("#verbs")).to_contain_text("Approve: ")
    office.by_hand("UPDATE public.billing_invoice SET description = 'By hand' WHERE customer_id = %s", talk.customer)
    page.keyboard.press("a")
    expect(page.locator("#strips")).to_contain_text("What was approved here did not run.")
    again = office.case(talk)
    assert office.executed(talk) == [("CreateInvoice", None)]
    assert office.balance(talk) == 500_000
    outcomes = "SELECT count(*) FROM public.ledger_attempt_outcome WHERE thread = %s AND outcome = 'drifted'"
    assert office.rows(outcomes, talk.thread) == [(1,)]
    page.get_by_role("link", name=f"Open E-{again}").click()
    expect(page.locator("#strips")).to_contain_text("Changed since it was approved.")
    expect(page.locator("#why ins", has_text="By hand")).to_be_visible()
    ready(page)
    page.keyboard.press("a")
    expect(page.locator("#result")).to_contain_text("Approved")
    office.ends(again)
    assert office.executed(talk) == [(tool, None) for tool in TWO]
    assert office.balance(talk) == 380_000


def test_the_slower_of_two_reviewers_reads_who_was_first_and_nothing_runs_twice(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    office.complaints.expect("409")
    slow, fast = office.open("reviewer", case), office.open("reviewer2", case)
    for page in (slow, fast):
        expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    fast.get_by_role("button", name="Approve").click()
    expect(fast.locator("#result")).to_contain_text("Approved")
    with slow.expect_response(lambda answer: answer.url.endswith("/decide/")) as answer:
        slow.get_by_role("button", name="Approve").click()
    assert answer.value.status == 409
    expect(slow.get_by_role("alert")).to_contain_text("Reviewer2 already approved this")
    expect(slow.get_by_role("alert")).to_contain_text("Your approval was not used and changed nothing.")
    office.ends(case)
    assert office.decision(case) == ("approve", "reviewer2", "")
    assert office.executed(talk) == [(tool, None) for tool in TWO]
    assert office.balance(talk) == 380_000


def signatures(office: Office, case: int) -> list[tuple[int, bool, str | None, str]]:
    """Return who signed which revision: its number, whether it only lowers, its author, and the reviewer."""
    query = """
    SELECT r.number, r.lowers, a.username, u.username FROM public.escalations_signature s
    JOIN public.escalations_revision r ON r.id = s.revision_id LEFT JOIN public.auth_user a ON a.id = r.author
    JOIN public.auth_user u ON u.id = s.reviewer WHERE s.escalation_id = %s ORDER BY s.id
    """
    return office.rows(query, case)
