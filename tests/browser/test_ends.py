"""The two ends of a payment that no happy path shows, on a running instance: withdrawn, and one that needs a person."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_chat import begin, say
from tests.stack import Stack

Login = Callable[[Page, str], None]
Connect = Callable[[str], "psycopg.Connection[Any]"]
Provider = Callable[..., Any]
Refund = Callable[[str, str], None]
SOON = 30_000  # milliseconds
PAID = (
    "SELECT to_char(i.billing_period, 'FMMonth YYYY') FROM public.billing_invoice i"
    " JOIN public.billing_customer c ON c.id = i.customer_id WHERE c.name = %s AND i.status = 'paid'"
)
UNCERTAIN = "SELECT uid, payload ->> 'provider_payment_id' FROM public.outbox_message WHERE state = 'uncertain'"


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=SOON)
    yield
    expect.set_options(timeout=None)


@pytest.fixture
def provider(stack: Stack) -> Iterator[Provider]:
    """Return a function that calls the sandbox; faults and silence end with the test."""

    def call(method: str, path: str, /, **body: Any) -> Any:
        as_form = path.startswith("/v1/")
        data = urlencode(body).encode() if as_form else json.dumps(body).encode()
        request = Request(stack.provider + path, data=data, method=method)  # noqa: S310  # an address of our own
        request.add_header("Authorization", f"Bearer {stack.content['stripe']['api_key']}")
        request.add_header("Content-Type", "application/x-www-form-urlencoded" if as_form else "application/json")
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")

    yield call
    call("DELETE", "/_sandbox/faults")
    call("POST", "/_sandbox/webhooks", action="resume")


@pytest.fixture
def refund(page: Page, login: Login, stack_connect: Connect) -> Callable[[str, str], None]:
    """Return a function that lets support staff ask for a refund of a customer's first payment, such as "€10"."""

    def ask(customer: str, amount: str) -> None:
        paid = stack_connect("owner").execute(PAID, (customer,)).fetchone()
        login(page, "support")
        begin(page, customer)
        say(page, f"Refund {amount} of {(paid or [''])[0]} to their card")

    return ask


def test_it_shows_what_was_withdrawn_before_it_was_sent(
    page: Page, new_page: Callable[[], Page], login: Login, refund: Refund, provider: Provider
) -> None:
    provider("POST", "/_sandbox/faults", when="before", mode="lock_timeout", method="POST", path="/v1/refunds", count=None)
    refund("Placeholder Press GmbH", "€10")
    card = page.locator("article.batch").last
    expect(card.locator(".call > .st")).to_have_text("Queued")
    expect(card).to_contain_text("asked us to wait. Nothing was executed.")
    admin = new_page()
    login(admin, "admin")
    admin.goto("/outbox/?state=ready")
    admin.locator("tbody a", has_text=re.compile(r"^M-\d+$")).first.click()
    admin.get_by_role("button", name="Withdraw").click()
    admin.get_by_label("Reason").fill("The customer changed their mind")
    admin.get_by_role("button", name=re.compile(r"Withdraw M-\d+")).click()
    expect(card.locator(".call > .st")).to_have_text("Withdrawn")
    expect(card.locator(".fate li")).to_have_text([re.compile("Queued"), re.compile("Withdrawn")])
    expect(card).to_contain_text("Taken back before it was sent. No money moved.")
    expect(page.locator("li.sys").last).to_contain_text("withdrawn before it was sent")


def test_it_shows_what_needs_a_person(page: Page, refund: Refund, stack_connect: Connect, provider: Provider) -> None:
    provider("POST", "/_sandbox/webhooks", action="pause")
    provider("POST", "/_sandbox/faults", when="after", mode="drop", method="POST", path="/v1/refunds", count=1)
    provider("POST", "/_sandbox/faults", when="before", mode="drop", method="GET", path="/v1/refunds", count=None)
    refund("Sample Cycles BV", "€11")
    card = page.locator("article.batch").last
    expect(card.locator(".call > .st")).to_have_text("Uncertain")
    uid, payment = stack_connect("owner").execute(UNCERTAIN).fetchone() or ("", "")
    second: dict[str, Any] = {"payment_intent": payment, "amount": 1100, "metadata[backstop_uid]": str(uid)}
    provider("POST", "/v1/refunds", **second)  # two refunds bear its name: no machine may choose
    provider("DELETE", "/_sandbox/faults")
    expect(card.locator(".call > .st")).to_have_text("Needs a person")
    expect(card.locator(".fate .now")).to_have_text("Needs a person")
    expect(card).to_contain_text("A person has to look at this. Please do not ask for it again.")
    expect(page.locator("li.sys", has_text="not known")).to_have_count(1)
    expect(page.locator("#customer")).to_contain_text("Put to a person")
