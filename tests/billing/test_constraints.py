"""Every rule of billing is met by its name: statements that a verb would never send."""

from typing import Any

import pytest
from psycopg import errors

from tests.billing import makers
from tests.billing.makers import about

INVOICE = (
    "INSERT INTO public.billing_invoice"
    " (customer_id, billing_period, currency, amount_minor, amount_due_minor, credited_minor, status, paid_at)"
    " VALUES (%(customer)s, {period}, {currency}, {amount}, {due}, {credited}, {status}, {paid})"
)
ENTRY = (
    "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
    " VALUES (%(customer)s, {number}, 'EUR', {amount}, {after}, {kind})"
)


def invoice(**changes: str) -> str:
    usual = {"period": "'2026-01-01'", "currency": "'EUR'", "amount": "100", "due": "100", "credited": "0", "status": "'draft'"}
    return INVOICE.format(**{**usual, "paid": "NULL", **changes})


def entry(**changes: str) -> str:
    return ENTRY.format(**{"number": "2", "amount": "1", "after": "12001", "kind": "'memo'", **changes})


REACHED = {
    "billing_invoice_period_is_month": invoice(period="'2026-01-02'"),
    "billing_invoice_amount_positive": invoice(amount="0", due="0"),
    "billing_invoice_due_within_amount": invoice(due="101"),
    "billing_invoice_credit_memo_cap": invoice(credited="101"),
    "billing_invoice_status_known": invoice(status="'sent'"),
    "billing_invoice_paid_has_time": invoice(status="'paid'"),
    "billing_invoice_customer_currency": invoice(currency="'USD'"),
    "billing_invoice_one_per_period": invoice(period="'2026-10-01'"),
    "billing_credit_entry_not_zero": entry(amount="0"),
    "billing_credit_entry_balance_not_negative": entry(after="-1"),
    "billing_credit_entry_kind_known": entry(kind="'gift'"),
    "billing_credit_entry_number": entry(number="1"),
    "billing_credit_balance_not_negative": "UPDATE public.billing_credit_account SET balance_minor = -1",
    "billing_credit_balance_bounded": "UPDATE public.billing_credit_account SET balance_minor = 1000000000001",
    "billing_credit_balance_is_sum": "UPDATE public.billing_credit_account SET balance_minor = 1",
    "billing_credit_memo_amount_positive": (
        "INSERT INTO public.billing_credit_memo (customer_id, invoice_id, currency, amount_minor, reason)"
        " VALUES (%(customer)s, %(invoice)s, 'EUR', 0, 'any')"
    ),
    "billing_credit_memo_customer_currency": (
        "INSERT INTO public.billing_credit_memo (customer_id, invoice_id, currency, amount_minor, reason)"
        " VALUES (%(customer)s, %(invoice)s, 'USD', 1, 'any')"
    ),
    "billing_refund_amount_positive": (
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
        " VALUES (%(customer)s, %(payment)s, 'EUR', 0, 'any')"
    ),
    "billing_refund_status_known": (
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason, status)"
        " VALUES (%(customer)s, %(payment)s, 'EUR', 1, 'any', 'lost')"
    ),
    "billing_refund_customer_currency": (
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason)"
        " VALUES (%(customer)s, %(payment)s, 'USD', 1, 'any')"
    ),
    "billing_refund_credit_note_follows": (
        "INSERT INTO public.billing_refund (customer_id, payment_id, currency, amount_minor, reason, provider_credit_note_id)"
        " VALUES (%(customer)s, %(payment)s, 'EUR', 1, 'any', 'cn_1')"
    ),
    "billing_payment_refund_cap": "UPDATE public.billing_payment SET refunded_minor = amount_minor + 1",
}


@pytest.mark.parametrize("constraint", REACHED)
def test_it_refuses_by_name(owner: Any, agent: Any, customer: int, constraint: str) -> None:
    paid, payment = makers.make_paid_invoice(owner, customer_id=customer)
    with pytest.raises(errors.IntegrityError) as caught, about(agent, customer) as conn:
        conn.execute(REACHED[constraint], {"customer": customer, "invoice": paid, "payment": payment})
    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE public.billing_credit_entry SET amount_minor = 1",
        "DELETE FROM public.billing_credit_entry",
        "TRUNCATE public.billing_credit_entry",
    ],
)
def test_it_never_changes_an_entry(owner: Any, customer: int, statement: str) -> None:
    with pytest.raises(errors.Error, match="append-only"):
        owner.execute(statement)


def test_it_records_every_change_with_its_row(owner: Any, agent: Any, customer: int) -> None:
    with about(agent, customer) as conn:
        conn.execute(invoice(), {"customer": customer})
    found = owner.execute(
        "SELECT login, subject, table_name, operation, after ->> 'status' FROM public.ledger_row_change"
        " WHERE login = 'backstop_agent'"
    ).fetchall()
    assert found == [("backstop_agent", customer, "billing_invoice", "INSERT", "draft")]
