"""Customers: looked up in one bounded answer, created with their opening balance."""

import json
from datetime import date
from typing import Any

import pytest
from psycopg import errors

from billing import customers
from ledger.refusals import Refusal
from tests.billing import makers
from tests.billing.makers import about


def test_it_looks_a_customer_up(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    paid, _ = makers.make_paid_invoice(owner, customer_id=customer, refunded_minor=20_000)
    draft = makers.make_invoice(owner, customer_id=customer, description="Seats", due_minor=40_000)
    with about(agent, customer, pipeline=pipeline) as conn:
        found = customers.look_up(conn, customer_id=customer)
    head = {key: found[key] for key in ("customer_id", "name", "currency", "card_last4", "credit_balance_minor")}
    assert head == {
        "customer_id": customer,
        "name": "Sample Cycles BV",
        "currency": "EUR",
        "card_last4": "4242",
        "credit_balance_minor": 12_000,
    }
    assert found["open_invoices"] == [
        {
            "invoice_id": draft,
            "billing_period": "2026-11-01",
            "description": "Seats",
            "status": "draft",
            "amount_minor": 48_000,
            "amount_due_minor": 40_000,
        }
    ]
    assert [invoice["invoice_id"] for invoice in found["last_invoices"]] == [draft, paid]
    assert found["refundable_payments"] == [
        {
            "invoice_id": paid,
            "billing_period": "2026-10-01",
            "amount_minor": 64_000,
            "refunded_minor": 20_000,
            "refundable_minor": 44_000,
            "refund_under_way": False,
        }
    ]
    assert json.dumps(found)


def test_it_answers_with_bounded_lists(owner: Any, agent: Any, customer: int) -> None:
    for month in range(1, 13):
        makers.make_invoice(owner, customer_id=customer, billing_period=date(2024, month, 1))
        makers.make_invoice(owner, customer_id=customer, billing_period=date(2025, month, 1))
        makers.make_paid_invoice(owner, customer_id=customer, billing_period=date(2026, month, 1))
    with about(agent, customer) as conn:
        found = customers.look_up(conn, customer_id=customer)
    assert [len(found[name]) for name in ("open_invoices", "last_invoices", "refundable_payments")] == [20, 10, 10]


def test_it_shows_nobody_else(owner: Any, agent: Any, customer: int, pipeline: bool) -> None:
    other = makers.make_customer(owner)
    sentence = f"Customer {other} does not exist in this conversation"
    with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
        customers.look_up(conn, customer_id=other)


@pytest.mark.parametrize(("opening", "entries"), [(0, []), (12_000, [(1, 12_000, 12_000, "opening")])])
def test_it_creates_a_customer_with_an_opening_balance(owner: Any, opening: int, entries: list[Any]) -> None:
    made = makers.make_customer(owner, credit_minor=opening)
    account = "SELECT customer_id, balance_minor, entries FROM public.billing_credit_account"
    assert owner.execute(account).fetchall() == [(made, opening, len(entries))]
    found = owner.execute("SELECT number, amount_minor, balance_after_minor, kind FROM public.billing_credit_entry").fetchall()
    assert found == entries


def test_it_creates_customers_as_the_owner_only(agent: Any, customer: int) -> None:
    with pytest.raises(errors.InsufficientPrivilege), about(agent, customer) as conn:
        customers.create(conn, name="Trial & Error LLC", email="x@example.test", currency="USD")
