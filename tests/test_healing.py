"""Any part of a running instance may be killed in the middle of a conversation: it ends all the same, once."""

import os
import signal
from collections.abc import Callable
from datetime import date
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page

from tests.pages import Complaints
from tests.stack import Stack
from tests.test_stories import begin, say
from tests.waiting import until

PARTS = ("agent", "outbox", "web", "valkey", "postgres", "stripe", "beat", "keeper")
LONG = 90  # seconds: a lease has to run out before another worker may go on


def ask(stack: Stack, query: str, *values: Any) -> list[Any]:
    """Return what the books say, or nothing while they cannot be asked."""
    try:
        with stack.connect("keeper") as conn:
            return conn.execute(query, values).fetchall()
    except psycopg.OperationalError:
        return []


def healed(stack: Stack, part: str, *, killed: int) -> bool:
    """Say whether another process does the part's work."""
    lines = {line["name"]: line for line in stack.status()["parts"]}
    return bool(lines[part]["state"] == "running" and lines[part]["pid"] != killed)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", PARTS)
def test_it_ends_a_conversation_in_which_a_part_was_killed(
    stack: Stack, page: Page, login: Callable[[Page, str], None], complaints: Complaints, part: str
) -> None:
    complaints.expect("")  # the page tells of every connection that broke
    month = date(2031, 1 + PARTS.index(part), 1)
    login(page, "support")
    number = begin(page, "Example Bakery Ltd")
    killed = stack.pid(part)
    assert killed
    say(page, f"Invoice {month:%B %Y} for £12.50 and charge it to the card.")
    sent = "SELECT m.id FROM public.agent_staff_message m JOIN public.agent_conversation c USING (thread) WHERE c.id = %s"
    until(lambda: ask(stack, sent, number), what="the message")
    os.kill(killed, signal.SIGKILL)
    paid = "SELECT amount_minor FROM public.billing_invoice WHERE billing_period = %s AND status = 'paid'"
    until(lambda: ask(stack, paid, month) == [(1250,)], seconds=LONG, what="a paid invoice")
    until(lambda: healed(stack, part, killed=killed), seconds=LONG, what=f"a new {part}")
    once = (
        "SELECT count(*), count(DISTINCT e.tool) FROM public.ledger_execution e JOIN public.agent_conversation c USING (thread)"
        " WHERE c.id = %s AND e.tool IN ('CreateInvoice', 'QueueCharge')"
    )
    assert until(lambda: ask(stack, once, number), what="the books") == [(2, 2)]
    charges = (
        "SELECT count(*) FROM public.billing_payment p JOIN public.billing_invoice i ON i.id = p.invoice_id"
        " WHERE i.billing_period = %s"
    )
    assert ask(stack, charges, month) == [(1,)]
