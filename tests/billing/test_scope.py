"""A conversation acts on its own customer only: the database refuses the rest, whatever the code says."""

from collections.abc import Callable
from typing import Any

import pytest
from psycopg import errors

from billing import credit_memos, credits, invoices, refunds  # noqa: A004
from billing.invoices import Reference
from ledger.refusals import Refusal
from outbox.messages import Cause
from tests.billing import makers
from tests.billing.makers import OCTOBER, about

TABLES = ("customer", "credit_account", "invoice", "payment", "refund", "credit_memo", "credit_entry")
Verb = Callable[[Any, Reference], Any]
VERBS: dict[str, Verb] = {
    "apply": lambda conn, named: credits.apply(conn, invoice=named, amount_minor=1, currency="EUR"),
    "issue": lambda conn, named: credit_memos.issue(conn, invoice=named, amount_minor=1, currency="EUR", reason="any"),
    "void": lambda conn, named: invoices.void(conn, invoice=named),
    "charge": lambda conn, named: invoices.queue_charge(
        conn, invoice=named, amount_minor=48_000, currency="EUR", cause=Cause(subject=named.customer_id)
    ),
    "refund": lambda conn, named: refunds.request(
        conn, invoice=named, amount_minor=1, currency="EUR", reason="any", cause=Cause(subject=named.customer_id)
    ),
}
ALONE: dict[str, Callable[[Any, int], Any]] = {
    "create": lambda conn, who: invoices.create(conn, customer_id=who, billing_period=OCTOBER, amount_minor=1, currency="EUR"),
    "pay out": lambda conn, who: credits.pay_out(conn, customer_id=who, amount_minor=1, currency="EUR"),
}


@pytest.fixture
def other(owner: Any) -> int:
    """Return another customer, with money of every kind."""
    other = makers.make_customer(owner, credit_minor=99_000)
    makers.make_paid_invoice(owner, customer_id=other)
    makers.make_invoice(owner, customer_id=other)
    return other


def state(owner: Any, customer: int) -> list[Any]:
    return [
        owner.execute(f"SELECT t FROM public.billing_{table} t WHERE {key(table)} = %s", (customer,)).fetchall()
        for table in TABLES
    ]


def key(table: str) -> str:
    return "id" if table == "customer" else "customer_id"


@pytest.mark.parametrize("verb", VERBS)
def test_it_does_not_touch_another_customers_invoice(
    owner: Any, agent: Any, customer: int, other: int, pipeline: bool, verb: str
) -> None:
    before = state(owner, other)
    for invoice, *_ in owner.execute("SELECT id FROM public.billing_invoice WHERE customer_id = %s", (other,)).fetchall():
        named = Reference(customer_id=customer, invoice_id=invoice)
        sentence = f"^Invoice {invoice} does not exist\\.$"
        with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
            VERBS[verb](conn, named)
    assert state(owner, other) == before


@pytest.mark.parametrize("verb", VERBS)
def test_it_answers_for_another_customer_as_for_nobody(
    owner: Any, agent: Any, customer: int, other: int, pipeline: bool, verb: str
) -> None:
    before = state(owner, other)
    for somebody in (other, 10**9):
        sentence = f"^Customer {somebody} does not exist in this conversation\\.$"
        with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
            VERBS[verb](conn, Reference(customer_id=somebody, billing_period=OCTOBER))
    assert state(owner, other) == before


@pytest.mark.parametrize("verb", ALONE)
def test_it_does_the_same_without_an_invoice(
    owner: Any, agent: Any, customer: int, other: int, pipeline: bool, verb: str
) -> None:
    before = state(owner, other)
    for somebody in (other, 10**9):
        sentence = f"^Customer {somebody} does not exist in this conversation\\.$"
        with pytest.raises(Refusal, match=sentence), about(agent, customer, pipeline=pipeline) as conn:
            ALONE[verb](conn, somebody)
    assert state(owner, other) == before


def test_it_does_nothing_without_a_subject(owner: Any, agent: Any, customer: int) -> None:
    makers.make_paid_invoice(owner, customer_id=customer)
    for verb in VERBS.values():
        with pytest.raises(Refusal, match="does not exist in this conversation"), agent.transaction():
            verb(agent, Reference(customer_id=customer, billing_period=OCTOBER))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
        " VALUES (%(other)s, '2026-01-01', 'EUR', 1, 1)",
        "INSERT INTO public.billing_credit_memo (customer_id, invoice_id, currency, amount_minor, reason)"
        " VALUES (%(other)s, %(invoice)s, 'EUR', 1, 'any')",
        "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
        " VALUES (%(other)s, 2, 'EUR', 1, 99001, 'memo')",
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
        " VALUES (%(other)s, %(payment)s, 'EUR', 1, 'any')",
    ],
)
def test_it_refuses_rows_of_another_customer(owner: Any, agent: Any, customer: int, other: int, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege), about(agent, customer) as conn:
        conn.execute(statement, ids(owner, customer, other))


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        (
            "INSERT INTO public.billing_credit_memo (customer_id, invoice_id, currency, amount_minor, reason)"
            " VALUES (%(mine)s, %(invoice)s, 'EUR', 1, 'any')",
            "billing_credit_memo_invoice",
        ),
        (
            "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
            " VALUES (%(mine)s, %(payment)s, 'EUR', 1, 'any')",
            "billing_refund_payment",
        ),
        (
            "INSERT INTO public.billing_credit_entry"
            " (customer_id, number, currency, amount_minor, balance_after_minor, kind, invoice_id)"
            " VALUES (%(mine)s, 2, 'EUR', 1, 12001, 'memo', %(invoice)s)",
            "billing_credit_entry_invoice",
        ),
    ],
)
def test_it_refuses_keys_into_another_customers_rows(
    owner: Any, agent: Any, customer: int, other: int, statement: str, constraint: str
) -> None:
    with pytest.raises(errors.ForeignKeyViolation) as caught, about(agent, customer) as conn:
        conn.execute(statement, ids(owner, customer, other))
    assert caught.value.diag.constraint_name == constraint


def ids(owner: Any, customer: int, other: int) -> dict[str, int]:
    found = owner.execute("SELECT invoice_id, id FROM public.billing_payment WHERE customer_id = %s", (other,)).fetchone()
    assert found
    return {"mine": customer, "other": other, "invoice": found[0], "payment": found[1]}
