"""Break it yourself on a running instance: whatever a visitor breaks, it heals, is done once, and the strip is green."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.pages import Complaints
from tests.stack import Stack
from tests.waiting import until

Login = Callable[[Page, str], None]
HEALED = 200_000  # milliseconds: a lease has to run out, 30 s of a conversation or 120 s of a charge that was on its way
ALL = re.compile(r"^(\d+) of \1 hold$")
DONE = re.compile(r"Done once: 4 calls applied, 1 charge of €2[23]\.\d\d at Stripe, 1 payment in the books\.")
BOOKS = """
SELECT (SELECT count(*) FROM public.billing_payment p
        WHERE p.invoice_id = i.id AND p.amount_minor BETWEEN 2200 AND 2300), i.status,
    (SELECT count(*) FROM public.billing_invoice o WHERE o.customer_id = i.customer_id AND o.billing_period = i.billing_period)
FROM public.billing_invoice i WHERE i.billing_period = to_date(%s, 'Month YYYY') AND i.amount_minor = 2400
"""
OF_NEWEST = """
SELECT array_agg(o.outcome ORDER BY a.opened_at) FROM public.ledger_attempt a
LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = a.id
WHERE a.ai_message_id = (SELECT ai_message_id FROM public.ledger_attempt ORDER BY opened_at DESC LIMIT 1)
"""
# Of the charge that was sent last: was its outcome unknown, how it became known, and how often each step was sent.
OF_CHARGE = """
SELECT m.ever_unknown, m.outcome_source,
    (SELECT string_agg(sent.step || ' ' || sent.calls, ', ' ORDER BY sent.first)
     FROM (SELECT d.step, count(*) AS calls, min(d.id) AS first FROM public.outbox_delivery d
           WHERE d.message_id = m.id AND d.step <> 'lookup' GROUP BY d.step) AS sent)
FROM public.outbox_message m WHERE m.topic = 'payment.charge' ORDER BY m.id DESC LIMIT 1
"""


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


def rows(stack: Stack, query: str, *values: Any) -> list[Any]:
    with stack.connect("keeper") as conn:
        return conn.execute(query, values).fetchall()


def is_green(page: Page) -> None:
    """See that everything holds now, and nothing is left to heal."""
    expect(page.locator("#strip .truth").nth(2)).to_contain_text("Nothing to heal")
    expect(page.locator("#strip .truth b").nth(0)).to_have_text(ALL)
    expect(page.locator("#strip .truth").nth(0)).to_have_attribute("data-state", "applied")
    expect(page.locator("#strip .truth").nth(1)).to_contain_text("Books = provider")
    expect(page.locator("#strip .truth").nth(1)).to_have_attribute("data-state", "applied")
    expect(page.locator("#strip .parts [data-state=failed]")).to_have_count(0)


def breaks(page: Page, stack: Stack, name: str, *, meanwhile: Callable[[], None] = lambda: None) -> list[str]:
    """Press a button, wait until it has healed, and return what the page told."""
    page.click(f"#do-{name}")
    steps = page.locator(f"#act-{name} .steps li")
    meanwhile()
    expect(steps.last).to_contain_text("Done once", timeout=HEALED)
    told: list[str] = [text.split("\n")[0].strip() for text in steps.all_inner_texts()]
    assert DONE.fullmatch(told[-1])
    month = next(found.group(1) for text in told if (found := re.search(r"to bill (\w+ \d{4})", text)))
    assert rows(stack, BOOKS, month) == [(1, "paid", 1)]
    expect(page.locator("article.batch").last.locator("> header")).to_contain_text("All 4 calls, together.")
    is_green(page)
    return told


@pytest.mark.timeout(300)
def test_it_heals_whatever_is_broken(stack: Stack, page: Page, login: Login, complaints: Complaints) -> None:
    complaints.expect("")  # the page tells of every connection that broke
    login(page, "support")
    page.goto("/story/")
    page.get_by_role("link", name="Break it yourself").last.click()
    is_green(page)

    told = breaks(page, stack, "answer")
    assert any("Stripe’s answer is lost" in text for text in told)
    page.wait_for_url(re.compile(r"/break/\d+/$"))

    def waits() -> None:
        expect(page.locator("#strip .healing")).to_contain_text(re.compile(r"1 conversation waits for its lease: \d+ s"))
        assert ALL.match(page.locator("#strip .truth b").first.inner_text())  # it heals, and all the same nothing is wrong

    told = breaks(page, stack, "worker", meanwhile=waits)
    assert any("is dead: 3 of 4 calls had written, and PostgreSQL undid all of them" in text for text in told)
    assert rows(stack, OF_NEWEST) == [([None, "committed"],)]

    told = breaks(page, stack, "broker")
    assert any("is killed. Whatever was in its queues is gone" in text for text in told)

    told = breaks(page, stack, "clock")
    assert any("it has forgotten every idempotency key" in text for text in told)
    assert rows(stack, OF_CHARGE) == [(True, "lookup", "create 1, confirm 1")]  # it was looked up, not sent again

    told = breaks(page, stack, "database")
    assert any("PostgreSQL answers again" in text for text in told)
    expect(page.locator("#strip .parts")).to_contain_text(re.compile(r"PostgreSQL\s+up, restarted \d"))


def test_it_says_so_while_the_database_is_down(
    stack: Stack, page: Page, login: Login, complaints: Complaints, stopped_supervisor: None
) -> None:
    complaints.expect("")
    login(page, "support")
    page.goto("/break/")
    is_green(page)
    kill_postgres(stack)
    expect(page.locator("#strip .healing")).to_contain_text("PostgreSQL is down")
    expect(page.locator("#strip .truth b").first).to_have_text(re.compile(r"^(\d+) of \1 held$"))
    other = page.context.new_page()
    answer = other.goto("/conversations/")
    assert answer is not None and answer.status == 503
    expect(other.locator("main")).to_contain_text("What was saved is safe")


def kill_postgres(stack: Stack) -> None:
    number = stack.pid("postgres")
    assert number
    os.kill(number, signal.SIGKILL)
    until(lambda: stack.pid("postgres") is None, what="the end of PostgreSQL")


@pytest.fixture
def stopped_supervisor(stack: Stack) -> Iterator[None]:
    """Keep the supervisor from starting again what the test stops, until it has ended."""
    number = stack.status()["supervisor"]
    os.kill(number, signal.SIGSTOP)
    yield
    os.kill(number, signal.SIGCONT)
    until(lambda: answers(stack), seconds=60, what="PostgreSQL")


def answers(stack: Stack) -> bool:
    try:
        return rows(stack, "SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False


def test_it_turns_red_when_something_does_not_hold(stack: Stack, page: Page, login: Login) -> None:
    login(page, "admin")
    page.goto("/break/")
    is_green(page)
    switch = "ALTER TABLE public.billing_payment {} TRIGGER USER"
    with stack.connect("superuser") as conn:
        conn.execute(switch.format("DISABLE"))
        try:
            expect(page.locator("#strip .truth").first).to_have_attribute("data-state", "failed")
            expect(page.locator("#strip .truth").first).to_contain_text("invariants do not hold")
        finally:
            conn.execute(switch.format("ENABLE"))
    is_green(page)
