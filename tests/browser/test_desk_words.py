"""Decisions by which nothing runs as it was asked, in a browser, each to the database's truth; and who looks at it, and when."""

from collections.abc import Iterator
from datetime import date

import pytest
from playwright.sync_api import expect

from tests.browser.office import SOON, Office

BOTH = "Invoice January 2095 for €1,500 and use €1,200 of their credit on it"  # the second call is above its limit
ASK = "Ask a person whether the setup fee may be waived"
PRESET = "The amount is not supported by the records."


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON * 1000)
    yield
    expect.set_options(timeout=None)


def test_a_rejection_is_read_by_staff_and_model_and_holds_what_is_sent_again(office: Office) -> None:
    talk = office.ask(BOTH)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.keyboard.press("r")
    page.get_by_label(PRESET).check()
    page.get_by_label("Details for the agent and support").fill("It was credited in December.")
    page.get_by_role("button", name="Reject both calls").click()
    expect(page.locator("#result")).to_contain_text("Rejected")
    office.ends(case)
    words = f"{PRESET} It was credited in December."
    assert office.decision(case) == ("reject", "reviewer", words)
    assert office.executed(talk) == []
    assert [text.startswith(f"REJECTED: {words}") for text in office.told(talk)[-2:]] == [True, True]
    office.staff.goto(talk.path)
    expect(office.staff.locator("article.batch").last).to_contain_text("Rejected by reviewer")
    expect(office.staff.locator("#feed")).to_contain_text(words)
    office.idle(talk)
    office.say(talk, BOTH)
    again = office.case(talk)
    page = office.open("reviewer", again)
    expect(page.locator("#why")).to_contain_text("rejected_before")
    expect(page.locator("#why")).to_contain_text(f"A person has turned this down before in this conversation: “{words}”")
    assert office.executed(talk) == []
    assert office.balance(talk) == 500_000


def test_an_answer_reaches_the_agent_and_ends_the_question(office: Office) -> None:
    talk = office.ask(ASK)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.get_by_label("Answer the agent").fill("No, the fee stays.")
    page.get_by_role("button", name="Send answer").click()
    expect(page.locator("#result")).to_contain_text("Answered")
    office.ends(case)
    assert office.decision(case) == ("answer", "reviewer", "No, the fee stays.")
    said = "SELECT count(*) FROM public.agent_transcript_entry WHERE thread = %s AND role = 'human' AND text LIKE %s"
    assert office.rows(said, talk.thread, "A reviewer answers: No, the fee stays.%") == [(1,)]
    office.staff.goto(talk.path)
    expect(office.staff.locator("#feed")).to_contain_text("No, the fee stays.")


def test_the_same_step_is_retried_once_its_reason_is_gone(office: Office) -> None:
    talk = office.ask("Invoice January 2095 for €900 and use €700 of their credit on it [misbehave: loop]")
    case = office.case(talk)
    page = office.open("reviewer", case)
    expect(page.locator("main")).to_contain_text("Rolled back, 3 times")
    assert office.executed(talk) == []
    office.invoice(talk, month=date(2001, 1, 1), amount_minor=80_000)  # the one that the agent insists on
    page.keyboard.press("y")
    expect(page.locator("#result")).to_contain_text("Retr")
    office.ends(case)
    assert office.decision(case) == ("retry", "reviewer", "")
    assert office.executed(talk) == [("CreateInvoice", None), ("ApplyCredit", None)]
    assert office.invoices(talk) == [("draft", 80_000, 10_000), ("draft", 90_000, 90_000)]
    assert office.balance(talk) == 430_000


def test_a_question_is_closed_with_a_note(office: Office) -> None:
    talk = office.ask(ASK)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.keyboard.press("d")
    page.get_by_label("Note, shown in the conversation").fill("Sales answers it by mail.")
    page.get_by_role("button", name=f"Close E-{case}").click()
    expect(page.locator("#result")).to_contain_text("Closed")
    office.ends(case)
    assert office.decision(case) == ("close", "reviewer", "Sales answers it by mail.")
    office.idle(talk)
    office.staff.goto(talk.path)
    expect(office.staff.locator("#feed")).to_contain_text("Sales answers it by mail.")


def test_a_question_is_given_to_another_reviewer(office: Office) -> None:
    talk = office.ask(ASK)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.get_by_role("button", name="Reassign").click()
    page.get_by_label("To", exact=True).select_option(label="reviewer2")
    page.get_by_role("dialog").get_by_role("button", name="Reassign").click()
    expect(page.locator("#verbs")).to_contain_text("Reviewer2 holds it.")
    holder = "SELECT u.username, e.state FROM public.escalations_escalation e JOIN public.auth_user u ON u.id = e.claimed_by"
    assert office.rows(f"{holder} WHERE e.id = %s", case) == [("reviewer2", "claimed")]
    assert office.acts(case)[-1] == ("reassigned", "reviewer")
    other = office.page("reviewer2", "/escalations/?view=mine")
    expect(other.locator(f"#e-{case}")).to_contain_text("You")


def test_a_question_is_snoozed_and_woken_up(office: Office) -> None:
    talk = office.ask(ASK)
    case = office.case(talk)
    page = office.open("reviewer", case)
    page.keyboard.press("z")
    page.get_by_role("button", name="1 hour").click()
    expect(page.locator("#strips")).to_contain_text("Snoozed until")
    asleep = "SELECT snoozed_until - now() BETWEEN interval '55 min' AND interval '1 h' FROM public.escalations_escalation"
    assert office.rows(f"{asleep} WHERE id = %s", case) == [(True,)]
    inbox = office.page("reviewer2", f"/escalations/?customer={talk.customer}")
    expect(inbox.locator("#counts")).to_contain_text("0 escalations")
    inbox.goto(f"/escalations/?view=snoozed&customer={talk.customer}")
    expect(inbox.locator(f"#e-{case}")).to_contain_text("Until")
    page.get_by_role("button", name="Wake it up").click()
    expect(page.locator("#strips")).not_to_contain_text("Snoozed until")
    assert office.rows("SELECT snoozed_until FROM public.escalations_escalation WHERE id = %s", case) == [(None,)]
    assert office.acts(case)[-2:] == [("snoozed", "reviewer"), ("woken", "reviewer")]


def test_two_are_rejected_together_in_the_inbox(office: Office) -> None:
    talks = [office.ask(BOTH), office.ask(BOTH)]
    cases = [office.case(talk) for talk in talks]
    page = office.page("reviewer", "/escalations/?q=Paper+Round")
    expect(page.locator("#live")).to_be_visible()
    for case in cases:
        page.locator(f"#s-{case}").check()
    expect(page.locator("#tray li")).to_have_count(2)
    page.keyboard.press("r")
    page.get_by_label("It acts on the wrong record.").check()
    page.get_by_role("button", name="Reject 2").last.click()
    expect(page.locator("#results")).to_contain_text("Reject: done for all 2.")
    for talk, case in zip(talks, cases, strict=True):
        office.ends(case)
        assert office.decision(case) == ("reject", "reviewer", "It acts on the wrong record.")
        assert office.executed(talk) == []
        assert office.balance(talk) == 500_000
