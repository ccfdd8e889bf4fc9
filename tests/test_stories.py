"""The stories that Backstop exists for, on a running instance, as its users live them in a browser."""

import json
import re
import urllib.request
from collections.abc import Callable
from datetime import date
from typing import Any

import psycopg
from playwright.sync_api import Page, expect

from tests.stack import Stack
from tests.waiting import until

Login = Callable[[Page, str], None]
Connect = Callable[[str], "psycopg.Connection[Any]"]
MONTH = date.today().strftime("%B %Y")
SOON = 30_000  # milliseconds: a loaded machine is slow, a stuck one is stuck


def begin(page: Page, customer: str) -> int:
    """Open a conversation about a customer and return its number."""
    page.goto("/conversations/new/")
    page.locator("#choices button", has_text=customer).click()
    page.wait_for_url(re.compile(r"/conversations/\d+/$"))
    return int(page.url.rstrip("/").rsplit("/", 1)[1])


def say(page: Page, text: str) -> None:
    """Type a message and press Enter."""
    page.fill("#say", text)
    page.press("#say", "Enter")


def batch(page: Page, number: int) -> Any:
    """Return the card of an attempt."""
    return page.locator("article.batch").nth(number)


def money(stack: Stack) -> list[dict[str, Any]]:
    """Return what moved at the provider, from its own log."""
    key = {"Authorization": f"Bearer {stack.content['stripe']['api_key']}"}
    with urllib.request.urlopen(urllib.request.Request(f"{stack.provider}/_sandbox/money", headers=key)) as answer:  # noqa: S310
        found: list[dict[str, Any]] = json.load(answer)["movements"]
    return found


def rows(conn: "psycopg.Connection[Any]", query: str, *values: Any) -> list[Any]:
    return conn.execute(query, values).fetchall()


def of_conversation(conn: "psycopg.Connection[Any]", number: int) -> tuple[str, int]:
    """Return a conversation's thread and customer."""
    ((thread, customer),) = rows(conn, "SELECT thread, subject FROM public.agent_conversation WHERE id = %s", number)
    return thread, customer


def open_question(page: Page, conn: "psycopg.Connection[Any]", thread: str) -> None:
    """Open the escalation of a thread from the inbox."""
    ((number,),) = rows(conn, "SELECT id FROM public.escalations_escalation WHERE thread = %s", thread)
    page.goto("/escalations/")
    page.locator(f'a[href="/escalations/{number}/"]').first.click()
    page.wait_for_url(re.compile(rf"/escalations/{number}/$"))


def test_an_invented_argument_leaves_nothing_and_the_resend_takes_effect_once(
    stack: Stack, page: Page, login: Login, stack_connect: Connect
) -> None:
    conn, before = stack_connect("keeper"), money(stack)
    login(page, "support")
    number = begin(page, "Sample Cycles BV")
    thread, customer = of_conversation(conn, number)
    ((paid_for,),) = rows(
        conn,
        "SELECT max(i.billing_period) FROM public.billing_payment p JOIN public.billing_invoice i ON i.id = p.invoice_id"
        " WHERE p.customer_id = %s",
        customer,
    )
    entries = "SELECT kind, amount_minor FROM public.billing_credit_entry WHERE customer_id = %s ORDER BY id"
    memos = "SELECT amount_minor FROM public.billing_credit_memo WHERE customer_id = %s ORDER BY id"
    refunds = "SELECT amount_minor, status FROM public.billing_refund WHERE customer_id = %s ORDER BY id"
    booked, credited, refunded = rows(conn, entries, customer), rows(conn, memos, customer), rows(conn, refunds, customer)
    month = paid_for.strftime("%B %Y")
    say(
        page,
        f"Please give them a credit memo over €80.00 for {month}, deduct it from the balance again and send €80.00 back"
        " to the card. [misbehave: stray quote]",
    )
    expect(batch(page, 0)).to_contain_text("Nothing ran", timeout=SOON)
    expect(batch(page, 0).locator('.call .st[data-state="failed"]')).to_have_count(1)
    expect(batch(page, 1)).to_contain_text("Applied", timeout=SOON)
    expect(batch(page, 1).locator('.st[data-state="confirmed"]')).to_have_count(1, timeout=SOON)
    made = "SELECT count(*) FROM public.ledger_execution WHERE thread = %s AND tool = %s"
    for tool in ("IssueCreditMemo", "ApplyCredit", "QueueRefund"):
        assert rows(conn, made, thread, tool) == [(1,)]
    assert rows(conn, memos, customer) == [*credited, (8000,)]
    assert rows(conn, entries, customer) == [*booked, ("memo", 8000), ("paid_out", -8000)]
    assert rows(conn, refunds, customer) == [*refunded, (8000, "confirmed")]
    moved = money(stack)[len(before) :]
    assert [abs(entry["amount"]) for entry in moved] == [8000]


def test_an_overdrawn_batch_is_undone_corrected_and_charged_once(
    stack: Stack, page: Page, login: Login, stack_connect: Connect
) -> None:
    conn, before = stack_connect("keeper"), money(stack)
    login(page, "support")
    number = begin(page, "Sample Cycles BV")
    thread, customer = of_conversation(conn, number)
    say(page, f"We still have to bill {MONTH}: 480 euros. Take 150 euros off with their credit, the card pays what is left.")
    expect(batch(page, 0)).to_contain_text("Nothing was changed.", timeout=SOON)
    words = [text.strip() for text in batch(page, 0).locator(".call .st").all_inner_texts()]
    assert words == ["Not applied: undone", "Failed", "Not applied: never ran"]
    expect(batch(page, 0)).to_contain_text("The credit balance is €120.00")
    expect(batch(page, 1)).to_contain_text("All 3 calls, together.", timeout=SOON)
    expect(batch(page, 1).locator('.st[data-state="confirmed"]')).to_have_count(1, timeout=SOON)
    expect(batch(page, 1).locator(".fate .now")).to_contain_text("Confirmed")
    expect(page.locator('.sys[data-state="confirmed"]')).to_contain_text("€360.00", timeout=SOON)
    expect(page.locator("#customer")).to_contain_text("€480.00", timeout=SOON)
    assert rows(conn, "SELECT state, provider_id LIKE 'pi_%%' FROM public.outbox_message WHERE thread = %s", thread) == [
        ("succeeded", True)
    ]
    newest = "SELECT status, amount_minor FROM public.billing_invoice WHERE customer_id = %s ORDER BY id DESC LIMIT 1"
    assert rows(conn, newest, customer) == [("paid", 48000)]
    assert [entry["amount"] for entry in money(stack)[len(before) :]] == [36000]


def test_three_rollbacks_go_to_a_reviewer_whose_answer_finishes_the_work(
    stack: Stack, new_page: Callable[[], Page], login: Login, stack_connect: Connect
) -> None:
    conn, staff, reviewer = stack_connect("keeper"), new_page(), new_page()
    login(staff, "support")
    number = begin(staff, "Specimen Labs Inc")
    thread, customer = of_conversation(conn, number)
    say(
        staff,
        f"Bill {MONTH} with 900 dollars, use 700 dollars of the credit they have, and charge what remains. [misbehave: stubborn]",
    )
    expect(staff.locator('article.batch[data-state="undone"]')).to_have_count(3, timeout=SOON)
    expect(staff.locator("#feed")).to_contain_text("nothing of them was saved", timeout=SOON)
    assert rows(conn, "SELECT count(*) FROM public.ledger_execution WHERE thread = %s", thread) == [(0,)]

    login(reviewer, "reviewer")
    open_question(reviewer, conn, thread)
    expect(reviewer.locator("main")).to_contain_text("23514")
    expect(reviewer.locator("main")).to_contain_text("billing_credit_balance_not_negative")
    ((balance,),) = rows(conn, "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", customer)
    reviewer.fill("#ans", f"Use {balance // 100} dollars of credit, that is all they have.")
    reviewer.get_by_role("button", name="Send answer").click()

    expect(staff.locator('article.batch[data-state="applied"]')).to_have_count(1, timeout=SOON)
    until(
        lambda: rows(conn, "SELECT state FROM public.escalations_escalation WHERE thread = %s", thread) == [("done",)],
        seconds=30,
        what="the end of the escalation",
    )
    assert rows(conn, "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", customer) == [(0,)]
    assert rows(conn, "SELECT count(*) FROM public.outbox_message WHERE thread = %s", thread) == [(1,)]


def test_a_batch_above_the_limit_waits_for_a_reviewer_and_runs_as_approved(
    stack: Stack, new_page: Callable[[], Page], login: Login, stack_connect: Connect
) -> None:
    conn, staff, reviewer = stack_connect("keeper"), new_page(), new_page()
    login(staff, "support")
    ((name, paid_for, amount),) = rows(
        conn,
        "SELECT c.name, i.billing_period, p.amount_minor FROM public.billing_payment p"
        " JOIN public.billing_invoice i ON i.id = p.invoice_id JOIN public.billing_customer c ON c.id = p.customer_id"
        " WHERE p.amount_minor > 25000 AND p.refunded_minor = 0 AND c.name LIKE 'Mock%%' ORDER BY p.id DESC LIMIT 1",
    )
    thread, customer = of_conversation(conn, begin(staff, name))
    say(staff, f"They want all of {paid_for.strftime('%B %Y')} back on their card, please.")
    expect(staff.locator('article.batch[data-state="held"]')).to_have_count(1, timeout=SOON)
    expect(batch(staff, 1).locator("> header")).to_contain_text("Waits for a reviewer")
    expect(staff.locator("#working")).to_contain_text("Waits for a reviewer since", timeout=SOON)
    say(staff, "Thanks")
    expect(staff.locator("#queue")).to_contain_text("1 message waits for the decision", timeout=SOON)
    assert rows(conn, "SELECT count(*) FROM public.billing_refund WHERE customer_id = %s", customer) == [(0,)]

    login(reviewer, "reviewer")
    reviewer.goto(staff.url)
    reviewer.get_by_role("link", name="Open in the inbox").click()
    reviewer.wait_for_url(re.compile(r"/escalations/\d+/$"))
    open_question(reviewer, conn, thread)
    reviewer.keyboard.press("a")
    expect(batch(staff, 1).locator("> header")).to_contain_text("Applied", timeout=SOON)
    expect(batch(staff, 1).locator(".by")).to_contain_text("Approved by reviewer")
    expect(staff.locator('article.batch .st[data-state="confirmed"]')).to_have_count(1, timeout=SOON)
    expect(staff.locator("#working")).to_contain_text("Idle", timeout=SOON)
    expect(staff.locator(".msg.staff .body").last).to_have_text("Thanks")
    assert rows(conn, "SELECT amount_minor, status FROM public.billing_refund WHERE customer_id = %s", customer) == [
        (amount, "confirmed")
    ]
