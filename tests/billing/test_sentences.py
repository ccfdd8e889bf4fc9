"""What is read when the database refuses: a safe sentence for every constraint, with facts that are true."""

import re
from typing import Any

import psycopg
import pytest

from agent.batch import run_batch
from billing.sentences import SENTENCES
from billing.tools import ApplyCredit
from tests.agent.batches import Desk
from tests.billing import makers

WRITTEN_BY_AGENTS = (
    "billing_credit_account",
    "billing_credit_entry",
    "billing_credit_memo",
    "billing_invoice",
    "billing_payment",
    "billing_refund",
    "outbox_message",
)
CONSTRAINTS = """
SELECT con.conname FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%(tables)s) AND con.contype <> 'n'
UNION
SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%(tables)s) AND x.indisunique
"""
UNSAFE = re.compile(r"_|\bSQL\b|\b(constraint|table|column|row|null|key|index|relation|violat\w+|insert|update)\b", re.IGNORECASE)
PERIOD = {"billing_period": "2026-11-01", "currency": "EUR"}
OCTOBER = {"billing_period": "2026-10-01", "currency": "EUR"}


def test_it_covers_what_agents_write(superuser: "psycopg.Connection[Any]") -> None:
    """The list above is what the agent login may write of the tables that belong to a customer."""
    found = superuser.execute(
        "SELECT DISTINCT table_name FROM information_schema.column_privileges WHERE grantee = 'backstop_agent'"
        " AND privilege_type IN ('INSERT', 'UPDATE') AND (table_name LIKE 'billing\\_%' OR table_name LIKE 'outbox\\_%')"
    ).fetchall()
    assert {name for (name,) in found} == set(WRITTEN_BY_AGENTS)


def test_it_has_a_sentence_for_every_constraint(superuser: "psycopg.Connection[Any]") -> None:
    found = {name for (name,) in superuser.execute(CONSTRAINTS, {"tables": list(WRITTEN_BY_AGENTS)}).fetchall()}
    assert len(found) > 40
    assert found - set(SENTENCES) == set()
    assert set(SENTENCES) - found == {"billing_credit_balance_is_sum"}  # raised by a trigger under this name


@pytest.mark.parametrize("constraint", [name for name, sentence in SENTENCES.items() if isinstance(sentence, str)])
def test_it_names_nothing_of_the_database(constraint: str) -> None:
    sentence = SENTENCES[constraint]
    assert isinstance(sentence, str)
    assert sentence[0].isupper() and sentence.endswith(".")
    assert not UNSAFE.search(sentence)


def story(desk: Desk, name: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Return the constraint that the story's batch meets, and the batch."""
    create: tuple[str, dict[str, Any]] = ("CreateInvoice", {**PERIOD, "amount_minor": 48_000})
    credit = {**PERIOD, "amount_minor": 15_000}
    refund = {**OCTOBER, "reason": "Doubled seats"}
    return {
        "balance": ("billing_credit_balance_not_negative", [create, ("ApplyCredit", credit)]),
        "balance together": (
            "billing_credit_balance_not_negative",
            [
                ("ApplyCredit", {"currency": "EUR", "amount_minor": 7_000}),
                ("ApplyCredit", {"currency": "EUR", "amount_minor": 6_000}),
            ],
        ),
        "period": ("billing_invoice_one_per_period", [("CreateInvoice", {**OCTOBER, "amount_minor": 1})]),
        "period together": ("billing_invoice_one_per_period", [create, create]),
        "due": (
            "billing_invoice_due_within_amount",
            [("ApplyCredit", {"invoice_id": small(desk), "currency": "EUR", "amount_minor": 6_000})],
        ),
        "due together": (
            "billing_invoice_due_within_amount",
            [("ApplyCredit", {"invoice_id": small(desk), "currency": "EUR", "amount_minor": 3_000})] * 2,
        ),
        "due of a new one": (
            "billing_invoice_due_within_amount",
            [("CreateInvoice", {**PERIOD, "amount_minor": 100}), ("ApplyCredit", {**PERIOD, "amount_minor": 200})],
        ),
        "memo": (
            "billing_invoice_credit_memo_cap",
            [("IssueCreditMemo", {**refund, "amount_minor": 48_001, "invoice_id": None})],
        ),
        "refund": ("billing_payment_refund_cap", [("QueueRefund", {**refund, "amount_minor": 20_001})]),
        "refund together": (
            "billing_payment_refund_cap",
            [("QueueRefund", {**refund, "amount_minor": minor}) for minor in (15_000, 15_001)],
        ),
        "two refunds": (
            "billing_refund_one_in_flight",
            [("QueueRefund", {**refund, "amount_minor": minor}) for minor in (100, 101)],
        ),
    }[name]


def small(desk: Desk) -> int:
    found = desk.scalar("SELECT id FROM public.billing_invoice WHERE amount_minor = 5000")
    return int(found)


TOLD = {
    "balance": "The credit balance is €120.00 (12000 minor units), so €150.00 cannot be used.",
    "balance together": "The credit balance is €120.00 (12000 minor units), and the calls of this step together use more.",
    "period": "There is an invoice for October 2026 already: invoice # of €480.00 (paid). Another month is possible.",
    "period together": "The calls of this step create more than one invoice for November 2026; a month has one.",
    "due": "Invoice # has €50.00 (5000 minor units) due, so €60.00 cannot be used.",
    "due together": "Invoice # has €50.00 (5000 minor units) due, and the calls of this step together use more.",
    "due of a new one": "€2.00 is more than what is due of the invoice of November 2026.",
    "memo": "Credit of €480.00 (48000 minor units) can still be given for invoice #, so €480.01 cannot be used.",
    "refund": "€200.00 (20000 minor units) of invoice # can still be refunded, so €200.01 cannot be used.",
    "refund together": (
        "€200.00 (20000 minor units) of invoice # can still be refunded, and the calls of this step together use more."
    ),
    "two refunds": "A refund of this payment is under way. Wait for its outcome before asking for another.",
}


@pytest.mark.parametrize("name", TOLD)
def test_it_tells_the_facts_to_correct_a_call(desk: Desk, name: str) -> None:
    desk.customer = makers.make_customer(desk.owner, credit_minor=12_000)
    makers.make_paid_invoice(desk.owner, customer_id=desk.customer, amount_minor=48_000, refunded_minor=28_000)
    makers.make_invoice(desk.owner, customer_id=desk.customer, billing_period=makers.date(2026, 9, 1), amount_minor=5_000)
    constraint, calls = story(desk, name)
    result = run_batch(desk.pool, batch=desk.batch(*calls))
    assert result.kind == "failed"
    told = next(answer.text for answer in result.answers if answer.status == "failed")
    assert re.sub(r"(?<=nvoice )\d+|(?<=ustomer )\d+", "#", told) == f"FAILED: {TOLD[name]}"
    assert desk.outcomes()[-1]["constraint_name"] == constraint
    assert not UNSAFE.search(told)


def test_it_tells_the_customers_currency_whoever_refuses_another(desk: Desk) -> None:
    """The gate does, before anything runs; should it ever not, the database does."""
    asked = ApplyCredit(customer_id=desk.customer, amount_minor=1, currency="GBP")
    with desk.pool.connection() as conn, conn.transaction():
        conn.execute("SELECT set_config('backstop.subject', %s, true)", (str(desk.customer),))
        sentence = SENTENCES["billing_credit_entry_customer_currency"]
        assert callable(sentence)
        said = sentence(conn, asked)
    assert said == f"Customer {desk.customer} is billed in EUR, so GBP cannot be used."
    result = run_batch(desk.pool, batch=desk.batch(("ApplyCredit", {"amount_minor": 1, "currency": "GBP"})))
    assert (result.kind, result.answers[0].text) == ("refused", f"FAILED: {said} Nothing is converted.")


def test_it_tells_that_something_is_queued_already(desk: Desk) -> None:
    desk.customer = makers.make_customer(desk.owner)
    invoice = makers.make_invoice(desk.owner, customer_id=desk.customer)
    calls = [("QueueCharge", {**PERIOD, "amount_minor": 48_000})]
    assert run_batch(desk.pool, batch=desk.batch(*calls)).kind == "applied"
    desk.owner.execute("UPDATE public.billing_invoice SET status = 'draft', charge_attempt = 0 WHERE id = %s", (invoice,))
    result = run_batch(desk.pool, batch=desk.batch(*calls))
    assert result.answers[0].text.startswith("FAILED: This is queued already.")
    assert desk.outcomes()[-1]["constraint_name"] == "outbox_message_once"
