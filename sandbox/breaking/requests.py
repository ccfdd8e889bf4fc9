"""The prepared request: four calls of one batch and a charge, about the next month that nobody has billed yet."""

from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone
from psycopg import Connection

from agent import messages
from ledger import wiring

GOOD_CARD = "4242"  # ends the test card that pays
AMOUNT, MEMO = 2_400, 100  # minor units: the invoice, and the credit that is given and used on it, a little more each time
CALLS = 4
BEGINNING, MIDDLE = "Issue a credit memo of ", " because of the outage. Invoice "
TEXT = BEGINNING + "{memo} for {past}" + MIDDLE + "{month} for {amount}, use {memo} of their credit and charge the rest."

CUSTOMER = """
SELECT c.id FROM public.billing_customer c
WHERE c.card_last4 = %(card)s AND c.provider_payment_method IS NOT NULL AND c.id = coalesce(%(customer)s, c.id)
  AND EXISTS (SELECT FROM public.billing_invoice i WHERE i.customer_id = c.id AND i.status = 'paid'
              AND i.billing_period < %(this_month)s AND i.amount_minor - i.credited_minor >= %(memo)s)
ORDER BY c.id DESC LIMIT 1
"""
ABOUT = """
SELECT c.currency, %(memo)s + (SELECT count(*) FROM public.billing_credit_memo m WHERE m.customer_id = c.id) %% 1000,
    (SELECT max(i.billing_period) FROM public.billing_invoice i WHERE i.customer_id = c.id AND i.status = 'paid'
     AND i.billing_period < %(this_month)s AND i.amount_minor - i.credited_minor >= %(memo)s),
    (SELECT min(month)::date
     FROM generate_series(%(this_month)s::timestamp, %(this_month)s + interval '90 years', '1 month') month
     WHERE NOT EXISTS (SELECT FROM public.billing_invoice i WHERE i.customer_id = c.id AND i.billing_period = month::date
                       AND i.status <> 'void'))
FROM public.billing_customer c WHERE c.id = %(customer)s
"""
BUSY = """
SELECT EXISTS (SELECT FROM public.agent_thread t WHERE t.thread = %(thread)s AND t.state <> 'idle')
    OR EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = %(thread)s AND m.state = 'queued')
"""


class CannotAsk(Exception):
    """The request cannot be made now; the text is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is sent in a conversation; the same twice would be held."""

    conversation: int
    thread: UUID
    customer: int
    author: int
    text: str
    month: date
    currency: str
    charged: int  # what Stripe is to take, in minor units


def customer(conn: Connection[Any], *, wanted: int | None = None) -> int | None:
    """Return a customer about whom it can be made: the wanted one, or nobody; any without a wish."""
    row = conn.execute(CUSTOMER, _given(wanted)).fetchone()
    return row[0] if row else None


def prepare(conn: Connection[Any], *, conversation: int, thread: UUID, customer: int, author: int) -> Request:
    """Return the next request for a conversation about a customer. Raise CannotAsk."""
    busy = conn.execute(BUSY, {"thread": thread}).fetchone()
    if busy and busy[0]:
        raise CannotAsk("The agent still has something to do in this conversation. Wait until it is done.")
    currency, memo, past, month = conn.execute(ABOUT, _given(customer)).fetchone() or (None, 0, None, None)
    if not (currency and past and month):
        raise CannotAsk("This customer has no paid month to give credit for. Begin with another one.")
    text = TEXT.format(memo=money(memo, currency), past=words(past), month=words(month), amount=money(AMOUNT, currency))
    return Request(
        conversation=conversation,
        thread=thread,
        customer=customer,
        author=author,
        text=text,
        month=month,
        currency=currency,
        charged=AMOUNT - memo,
    )


def send(conn: Connection[Any], request: Request) -> None:
    """Queue the request; the caller rings the bell. Raise agent.messages.Unsendable."""
    messages.send(conn, thread=request.thread, message=uuid4(), author=request.author, text=request.text)


def money(minor: int, currency: str) -> str:
    """Return an amount as people read it."""
    return str(wiring.plugged("BACKSTOP_MONEY")(minor, currency))


def words(month: date) -> str:
    """Return a month as people write it."""
    return f"{month:%B %Y}"


def _given(customer: int | None) -> dict[str, Any]:
    first = timezone.localdate().replace(day=1)
    return {"card": GOOD_CARD, "customer": customer, "this_month": first, "memo": MEMO}
