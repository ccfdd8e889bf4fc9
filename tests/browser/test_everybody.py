"""Everybody can use it: axe finds nothing on any page in any of its states, wide and on a phone, light and dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from escalations import lifecycle
from tests.browser.looks import problems
from tests.browser.office import SOON, Office, ready
from tests.waiting import until

HELD = "Invoice January 2095 for €1,500 and use €1,200 of their credit on it"
ROLLED_BACK = "Invoice January 2095 for €900 and use €700 of their credit on it [misbehave: loop]"
QUORUM = "Invoice January 2095 for €3,000 and issue a credit memo of €2,600 for January 2095 because of the outage"
CHARGE = "Invoice January 2095 for €25 and charge it to their card"
ASK = "Ask a person whether the setup fee may be waived"


@pytest.fixture(autouse=True)
def patient(office: Office) -> Iterator[None]:
    for noise in ("403", "404", "409", "422"):
        office.complaints.expect(noise)
    expect.set_options(timeout=SOON * 1000)
    yield
    expect.set_options(timeout=None)


def seen(page: Page, *paths: str) -> list[str]:
    """Return what is wrong with these pages; without any, with the page as it is."""
    found = [] if paths else problems(page, page.url)
    for path in paths:
        page.goto(path)
        found += problems(page, path)
    return found


def test_conversations(office: Office) -> None:
    talks = [office.ask(text) for text in (CHARGE, HELD, ROLLED_BACK, ASK, "What can you do?", "")]
    done, held, rolled_back, asked, idle, _ = talks
    for talk in (held, rolled_back, asked):
        office.case(talk)
    office.idle(idle)
    page = office.staff
    page.goto(done.path)
    expect(page.locator('article.batch .st[data-state="confirmed"]')).to_have_count(1)
    found = seen(
        page, "/conversations/", "/conversations/?q=nobody", "/conversations/new/", "/conversations/new/?customer=nobody"
    )
    found += seen(page, *(talk.path for talk in talks))
    page.goto(held.path)
    page.get_by_role("button", name="Withdraw", exact=True).click()
    found += seen(page)
    reviewer = office.page("reviewer", idle.path)
    reviewer.get_by_role("button", name="Step in", exact=True).click()
    found += seen(reviewer)
    reviewer.get_by_role("dialog", name="Step in for the agent").get_by_role("button", name="Step in").click()
    expect(reviewer.locator("#working")).to_contain_text("stepped in")
    found += seen(reviewer)
    reviewer.get_by_role("button", name="Hand back").click()
    assert not found, "\n".join(found)


def _opens(page: Page, key: str) -> bool:
    """Press a key unless its sheet is open; a page that has just come to the window hears no key yet."""
    dialog = page.get_by_role("dialog")
    if not dialog.is_visible():
        page.keyboard.press(key)
    return dialog.is_visible()


def test_a_held_case_and_its_sheets(office: Office) -> None:
    held = office.case(office.ask(HELD))
    page = office.open("reviewer", held)
    found = seen(page)
    dialog = page.get_by_role("dialog")
    for key in "rnzt?":
        until(lambda key=key: _opens(page, key), seconds=30, every=0.5, what=f"the sheet of {key}")
        expect(dialog).to_be_visible()
        found += seen(page)
        page.keyboard.press("Escape")
    page.get_by_role("button", name="Reassign").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found += seen(page) + seen(office.open("admin", held))
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    found += seen(page) + seen(office.open("reviewer2", held))
    assert not found, "\n".join(found)


def test_an_edited_case(office: Office) -> None:
    held = office.case(office.ask(HELD))
    page = office.page("reviewer")
    found = seen(page, f"/escalations/{held}/?edit=1")
    page.get_by_label("Amount").nth(1).fill("8oo")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += seen(page)
    page.get_by_label("Amount").nth(1).fill("800")
    page.get_by_role("button", name="Preview edit").click()
    expect(page.get_by_text("No rule holds what is proposed now.")).to_be_visible()
    found += seen(page)
    page.locator("#keep-0").uncheck()  # the invoice: what uses credit on it fails
    expect(page.locator("#proof")).to_contain_text("It would fail, so it cannot be approved.")
    found += seen(page)
    assert not found, "\n".join(found)


def test_other_cases(office: Office) -> None:
    talks = [office.ask(text) for text in (QUORUM, ROLLED_BACK, ASK)]
    quorum, rolled_back, asked = (office.case(talk) for talk in talks)
    page = office.open("reviewer", quorum)
    page.get_by_role("button", name="Sign, 1 of 2").click()
    expect(page.locator("#aside")).to_contain_text("1 of 2 reviewers signed.")
    found = seen(page, page.url, f"/escalations/{rolled_back}/", f"/escalations/{rolled_back}/?edit=1", f"/escalations/{asked}/")
    page.get_by_role("button", name="Close").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found += seen(page)
    assert not found, "\n".join(found)


def test_what_became_of_a_case(office: Office) -> None:
    first = office.ask("Invoice January 2095 for €1,500")
    office.idle(first)
    office.say(first, "Use €1,200 of their credit on January 2095")
    rejected = office.case(second := office.ask(HELD))
    case = office.case(first)
    page, other = office.open("reviewer", case), office.open("reviewer2", rejected)
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    office.by_hand("UPDATE public.billing_invoice SET description = 'By hand' WHERE customer_id = %s", first.customer)
    page.keyboard.press("a")
    expect(page.locator("#strips")).to_contain_text("What was approved here did not run.")
    found = seen(page, f"/escalations/{office.case(first)}/", first.path)
    slow = office.open("reviewer", rejected)
    slow.keyboard.press("r")
    other.keyboard.press("r")
    for reader in (other, slow):
        reader.get_by_label("Details for the agent and support").fill("No.")
        reader.get_by_role("button", name="Reject both calls").click()
    expect(slow.get_by_role("alert")).to_contain_text("already rejected this")
    found += seen(slow)
    office.ends(rejected)
    found += seen(other, f"/escalations/{rejected}/", second.path, "/decisions/", "/decisions/?q=nothing", "/decisions/?since=x")
    assert not found, "\n".join(found)


def test_the_inbox(office: Office) -> None:
    for talk in [office.ask(text) for text in (HELD, HELD, ROLLED_BACK, ASK)]:
        office.case(talk)
    page = office.page("reviewer", "/escalations/")
    expect(page.locator("#live")).to_be_visible()
    found = seen(page, page.url, "/escalations/?kind=approval")
    expect(page.locator("#live")).to_be_visible()
    for place in range(2):
        page.locator("[data-select]").nth(place).check()
    expect(page.locator("#tray li")).to_have_count(2)
    found += seen(page)
    for key in ("r", "z"):
        page.keyboard.press(key)
        found += seen(page)
        page.keyboard.press("Escape")
    views = ("mine", "unclaimed", "second", "snoozed", "waiting", "done", "expired")
    found += seen(
        page, *(f"/escalations/?view={view}" for view in views), "/escalations/?q=nothing", "/escalations/?amount_from=x"
    )
    assert not found, "\n".join(found)


def test_the_evidence_and_what_leaves(office: Office) -> None:
    talk = office.ask(CHARGE)
    failed = office.ask(ROLLED_BACK)
    office.case(failed)
    sent = "SELECT id FROM public.outbox_message WHERE thread = %s AND state = 'succeeded'"
    office.sent(talk)
    ((message,),) = office.rows(sent, talk.thread)
    attempts = "SELECT id FROM public.ledger_attempt WHERE thread = ANY(%s)"
    page = office.page("admin")
    found = seen(page, "/audit/", "/audit/?q=nothing", "/audit/attempts/", "/find/?q=nothing")
    found += seen(page, *(f"/audit/attempts/{row[0]}/" for row in office.rows(attempts, [talk.thread, failed.thread])[:3]))
    found += seen(page, "/outbox/", "/outbox/?state=ready", f"/outbox/{message}/")
    found += seen(page, f"/outbox/several/?kind=look_up&message={message}", f"/outbox/several/?kind=replay&message={message}")
    assert not found, "\n".join(found)


def test_what_is_rare(office: Office) -> None:
    """A conversation that could not go on, and what the system asks about by itself."""
    talk, kinds = office.ask(""), ("infrastructure", "budget", "unknown_outcome", "rejected_payment", "dirty_state")
    payload = {"reason": "The books say this, the provider says that.", "amount_minor": 2500, "currency": "EUR"}
    page = office.page("reviewer")
    with office.stack.connect("owner") as conn:
        cases = [lifecycle.open(conn, kind=kind, object=f"{kind}:{talk.thread}", payload=payload) for kind in kinds]
        stands = "UPDATE public.agent_thread SET state = %s, activity = %s WHERE thread = %s"
        office.by_hand(stands, "stuck", "Could not go on", talk.thread)
        try:
            found = seen(page, talk.path, *(f"/escalations/{case}/" for case in cases))
            found += seen(office.page("support"), talk.path)
        finally:
            office.by_hand(stands, "idle", "", talk.thread)
            for kind in kinds:
                lifecycle.settle(conn, object=f"{kind}:{talk.thread}", text="It was a test.")
    assert not found, "\n".join(found)


def test_the_rest(office: Office) -> None:
    nobody = office.page("")
    found = seen(nobody, "/login/")
    nobody.fill("[name=username]", "nobody")
    nobody.fill("[name=password]", "wrong")
    nobody.click("main button[type=submit]")
    expect(nobody.get_by_role("alert")).to_be_visible()
    found += seen(nobody)
    page = office.page("reviewer")
    found += seen(page, "/story/", "/break/", "/conversations/999999/", "/nowhere/", "/limits/", "/story/")
    ready(page)
    page.keyboard.press("?")
    found += seen(page)
    assert not found, "\n".join(found)
