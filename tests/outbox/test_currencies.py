"""Amounts in every kind of currency, from the books to the provider and back: charged and refunded, never a hundred times."""

from datetime import date
from typing import Any

import pytest

from billing import invoices, money, refunds
from billing.invoices import Reference
from ledger.refusals import Refusal
from outbox.messages import Cause
from tests.billing import makers
from tests.outbox.desk import Desk, Row


def billed(desk: Desk, currency: str, minor: int) -> Reference:
    """Let the desk's customer be one who pays in this currency, and owe an amount."""
    desk.customer = makers.make_customer(desk.owner, currency=currency)
    desk.card("pm_card_visa")
    period = date(2026, 11, 1)
    invoice = makers.make_invoice(desk.owner, customer_id=desk.customer, billing_period=period, amount_minor=minor)
    return Reference(customer_id=desk.customer, invoice_id=invoice)


def charge(desk: Desk, invoice: Reference, minor: int, currency: str) -> Row:
    with makers.about(desk.agent, desk.customer) as conn:
        invoices.queue_charge(conn, invoice=invoice, amount_minor=minor, currency=currency, cause=Cause(subject=desk.customer))
    return desk.newest()


def refund(desk: Desk, invoice: Reference, minor: int, currency: str) -> Row:
    with makers.about(desk.agent, desk.customer) as conn:
        refunds.request(
            conn, invoice=invoice, amount_minor=minor, currency=currency, reason="r", cause=Cause(subject=desk.customer)
        )
    return desk.newest()


KINDS = [
    # currency, minor units, what the provider must get, minor units that go back, what the provider must get of them
    ("EUR", 48_000, 48_000, 1, 1),
    ("HUF", 48_050, 48_050, 50, 50),
    ("JPY", 500, 500, 120, 120),
    ("KRW", 48_000, 48_000, 1, 1),
    ("ISK", 700, 70_000, 1, 100),
    ("UGX", 5_000, 500_000, 5, 500),
    ("KWD", 5_120, 5_120, 10, 10),
    ("TND", 48_000, 48_000, 990, 990),
]


@pytest.mark.parametrize(("currency", "minor", "sent", "back", "sent_back"), KINDS, ids=[kind[0] for kind in KINDS])
def test_it_moves_exactly_what_the_books_say(desk: Desk, currency: str, minor: int, sent: int, back: int, sent_back: int) -> None:
    invoice = billed(desk, currency, minor)
    paid = charge(desk, invoice, minor, currency)
    desk.deliver()
    returned = refund(desk, invoice, back, currency)
    desk.deliver()

    assert [desk.read(message)["state"] for message in (paid, returned)] == ["succeeded", "succeeded"]
    assert (desk.provider.movements(paid["uid"]), desk.provider.movements(returned["uid"])) == ([sent], [-sent_back])
    seen = desk.read(paid)["seen"]
    assert money.from_provider(seen["amount"], seen["currency"]) == (minor, currency)
    entered = desk.one("SELECT amount_minor, refunded_minor, currency FROM public.billing_payment")
    assert tuple(entered.values()) == (minor, back, currency)


def test_it_promises_nothing_that_the_provider_cannot_move(desk: Desk) -> None:
    invoice = billed(desk, "KWD", 5_124)

    with pytest.raises(Refusal, match=r"the last decimal of KWD must be 0"):
        charge(desk, invoice, 5_124, "KWD")
    assert desk.owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (0,)


@pytest.mark.parametrize("other", ["USD", "JPY", "eur"])
def test_it_charges_and_refunds_in_the_invoices_currency_only(desk: Desk, other: str) -> None:
    invoice = billed(desk, "EUR", 48_000)
    with pytest.raises(Refusal, match=f"in EUR, so it cannot be charged in {other}"):
        charge(desk, invoice, 48_000, other)
    charge(desk, invoice, 48_000, "EUR")
    desk.deliver()

    with pytest.raises(Exception, match="billing_refund_customer_currency"):
        refund(desk, invoice, 100, other)
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0


def test_it_takes_no_object_in_another_currency_for_its_own(desk: Desk, web: Any) -> None:
    message = charge(desk, billed(desk, "EUR", 48_000), 48_000, "EUR")
    params = desk.provider.flat(message["steps"][0]["params"]) | {"currency": "usd"}
    desk.provider.create("/v1/payment_intents", **params)
    desk.put(message, "uncertain")

    desk.deliver_once()

    assert (desk.read(message)["state"], desk.read(message)["last_error"]) == ("dead", "not what was asked for")
