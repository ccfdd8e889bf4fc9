"""Credit: used, paid out, given; every balance the sum of its entries."""

import random
from datetime import date
from typing import Any

import pytest
from psycopg import errors

from billing import credit_memos, credits, invoices  # noqa: A004
from billing.invoices import Reference
from ledger.refusals import Refusal
from tests.billing import makers
from tests.billing.makers import NOVEMBER, about


def entries(owner: Any, customer: int) -> list[tuple[Any, ...]]:
    return owner.execute(
        "SELECT number, amount_minor, balance_after_minor, kind FROM public.billing_credit_entry"
        " WHERE customer_id = %s ORDER BY number",
        (customer,),
    ).fetchall()


def balance(owner: Any, customer: int) -> int:
    found = owner.execute(
        "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", (customer,)
    ).fetchone()
    assert found
    return int(found[0])


@pytest.mark.parametrize("status", ["draft", "charge_failed"])
def test_it_lowers_what_is_due(owner: Any, agent: Any, customer: int, pipeline: bool, status: str) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, status=status)
    with about(agent, customer, pipeline=pipeline) as conn:
        used = credits.apply(
            conn, invoice=Reference(customer_id=customer, billing_period=NOVEMBER), amount_minor=12_000, currency="EUR"
        )
    assert used.pop("credit_entry_id") > 0
    assert used == {
        "applied_minor": 12_000,
        "credit_balance_minor": 0,
        "invoice_id": invoice,
        "invoice_status": status,
        "amount_due_minor": 36_000,
        "currency": "EUR",
    }
    assert entries(owner, customer) == [(1, 12_000, 12_000, "opening"), (2, -12_000, 0, "applied")]


def test_it_deducts_without_an_invoice(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    with about(agent, customer, pipeline=pipeline) as conn:
        out = credits.pay_out(conn, customer_id=customer, amount_minor=2_000, currency="EUR")
    assert (out["paid_out_minor"], out["credit_balance_minor"]) == (2_000, 10_000)
    assert entries(owner, customer)[1:] == [(2, -2_000, 10_000, "paid_out")]


def test_it_gives_credit_for_an_invoice(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    invoice, _ = makers.make_paid_invoice(owner, customer_id=customer, billing_period=NOVEMBER)
    with about(agent, customer, pipeline=pipeline) as conn:
        memo = credit_memos.issue(
            conn,
            invoice=Reference(customer_id=customer, billing_period=NOVEMBER),
            amount_minor=32_000,
            currency="EUR",
            reason="The doubled seats",
        )
    assert memo.pop("credit_memo_id") > 0
    assert memo == {
        "invoice_id": invoice,
        "amount_minor": 32_000,
        "credited_minor": 32_000,
        "credit_balance_minor": 44_000,
        "currency": "EUR",
    }
    found = owner.execute(
        "SELECT e.kind, e.invoice_id, m.amount_minor, m.reason FROM public.billing_credit_entry e"
        " JOIN public.billing_credit_memo m ON m.id = e.credit_memo_id"
    ).fetchall()
    assert found == [("memo", invoice, 32_000, "The doubled seats")]


@pytest.mark.parametrize(
    ("amount", "currency", "constraint"),
    [
        (12_001, "EUR", "billing_credit_balance_not_negative"),
        (5_001, "EUR", "billing_invoice_due_within_amount"),
        (100, "USD", "billing_credit_entry_customer_currency"),
    ],
)
def test_it_leaves_the_verdict_to_the_database(
    owner: Any, agent: Any, customer: int, pipeline: bool, amount: int, currency: str, constraint: str
) -> None:
    makers.make_invoice(owner, customer_id=customer, amount_minor=5_000)
    with pytest.raises(errors.IntegrityError) as caught, about(agent, customer, pipeline=pipeline) as conn:
        credits.apply(
            conn, invoice=Reference(customer_id=customer, billing_period=NOVEMBER), amount_minor=amount, currency=currency
        )
    assert caught.value.diag.constraint_name == constraint
    assert balance(owner, customer) == 12_000


def test_it_leaves_nothing_behind_when_the_invoice_is_missing(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    with pytest.raises(Refusal, match="There is no invoice for November 2026"), about(agent, customer, pipeline=pipeline) as conn:
        credits.apply(conn, invoice=Reference(customer_id=customer, billing_period=NOVEMBER), amount_minor=100, currency="EUR")
    assert (balance(owner, customer), len(entries(owner, customer))) == (12_000, 1)


def test_it_caps_the_memos_of_an_invoice(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    makers.make_invoice(owner, customer_id=customer)
    reference = Reference(customer_id=customer, billing_period=NOVEMBER)
    with pytest.raises(errors.CheckViolation) as caught, about(agent, customer, pipeline=pipeline) as conn:
        credit_memos.issue(conn, invoice=reference, amount_minor=30_000, currency="EUR", reason="first")
        credit_memos.issue(conn, invoice=reference, amount_minor=20_000, currency="EUR", reason="second")
    assert caught.value.diag.constraint_name == "billing_invoice_credit_memo_cap"


def test_it_applies_credit_to_an_invoice_of_the_same_transaction(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    reference = Reference(customer_id=customer, billing_period=NOVEMBER)
    with about(agent, customer, pipeline=pipeline) as conn:
        made = invoices.create(conn, customer_id=customer, billing_period=NOVEMBER, amount_minor=48_000, currency="EUR")
        used = credits.apply(conn, invoice=reference, amount_minor=12_000, currency="EUR")
    assert used["invoice_id"] == made["invoice_id"]
    assert used["amount_due_minor"] == 36_000


def step(conn: Any, customer: int, chance: random.Random) -> None:
    period, amount = date(2026, chance.randrange(1, 13), 1), chance.randrange(1, 4_000)
    reference = Reference(customer_id=customer, billing_period=period)
    match chance.randrange(5):
        case 0:
            credits.apply(conn, invoice=reference, amount_minor=amount, currency="EUR")
        case 1:
            credits.pay_out(conn, customer_id=customer, amount_minor=amount, currency="EUR")
        case 2:
            credit_memos.issue(conn, invoice=reference, amount_minor=amount, currency="EUR", reason="any")
        case 3:
            invoices.void(conn, invoice=reference)
        case 4:
            invoices.create(conn, customer_id=customer, billing_period=period, amount_minor=20_000, currency="EUR")


def test_it_keeps_every_balance_the_sum_of_its_entries(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    chance, done = random.Random(7), 0
    for _ in range(120):
        try:
            with about(agent, customer, pipeline=pipeline) as conn:
                step(conn, customer, chance)
            done += 1
        except (errors.IntegrityError, Refusal):
            pass
    rows = entries(owner, customer)
    assert done > 30
    assert [number for number, *_ in rows] == list(range(1, len(rows) + 1))
    assert sum(amount for _, amount, *_ in rows) == balance(owner, customer) == rows[-1][2]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE public.billing_credit_account SET balance_minor = balance_minor - 1 WHERE customer_id = %(id)s",
        "UPDATE public.billing_credit_account SET entries = entries + 1 WHERE customer_id = %(id)s",
        "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
        " VALUES (%(id)s, 2, 'EUR', -1, 11999, 'paid_out')",
        "WITH account AS (UPDATE public.billing_credit_account SET balance_minor = 1, entries = 2 WHERE customer_id = %(id)s)"
        " INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
        " VALUES (%(id)s, 2, 'EUR', -1, 1, 'paid_out')",
    ],
)
@pytest.mark.parametrize("credit", [12_000, 0])
def test_it_notices_a_balance_that_differs_from_its_entries(owner: Any, agent: Any, statement: str, credit: int) -> None:
    customer = makers.make_customer(owner, credit_minor=credit)
    with pytest.raises(errors.CheckViolation) as caught, about(agent, customer) as conn:
        conn.execute(statement, {"id": customer})
    assert caught.value.diag.constraint_name in {"billing_credit_balance_is_sum", "billing_credit_balance_not_negative"}
