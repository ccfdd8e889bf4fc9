"""What the model and staff read when the database refuses: one sentence a constraint, with the numbers to correct.

A sentence with numbers is read after the rollback: it must be true of the data as it is then, without the calls of
the same step. Sentences name no table, column or SQL.
"""

from collections.abc import Callable
from typing import Any

from psycopg import Connection

from billing import invoices, money, rows

Sentence = str | Callable[[Connection[Any], Any], str]

OUR_FAULT = "The books would not agree after this, so it was refused. Do not try it again; ask a person."
QUEUED_ALREADY = "This is queued already. Do not ask for it again; its outcome comes as a notice."
TOO_LARGE = "The amount is outside what an invoice or a balance can hold."


def balance_too_low(conn: Connection[Any], asked: Any) -> str:
    """Say how much credit there is."""
    account = _account(conn, asked)
    balance = account["balance_minor"]
    return f"The credit balance is {money.exact(balance, account['currency'])}, {_so(asked, left=balance)}."


def wrong_currency(conn: Connection[Any], asked: Any) -> str:
    """Say which currency the customer has."""
    currency = _account(conn, asked)["currency"]
    return f"Customer {asked.customer_id} is billed in {currency}, so {asked.currency} cannot be used."


def period_taken(conn: Connection[Any], asked: Any) -> str:
    """Say which invoice the period has already."""
    period = f"{asked.billing_period:%B %Y}"
    reference = invoices.Reference(customer_id=asked.customer_id, billing_period=asked.billing_period)
    found = invoices.find(conn, invoice=reference)
    if found is None:
        return f"The calls of this step create more than one invoice for {period}; a month has one."
    amount, status = money.format(found["amount_minor"], found["currency"]), found["status"].replace("_", " ")
    way_out = "Use it, or void it first" if found["status"] in ("draft", "charge_failed") else "Another month is possible"
    return f"There is an invoice for {period} already: invoice {found['id']} of {amount} ({status}). {way_out}."


def more_than_due(conn: Connection[Any], asked: Any) -> str:
    """Say what is due of the invoice."""
    found = invoices.find(conn, invoice=asked.reference)
    if found is None:
        return f"{_wanted(asked)} is more than what is due of {asked.words}."
    due = found["amount_due_minor"]
    return f"Invoice {found['id']} has {money.exact(due, found['currency'])} due, {_so(asked, left=due)}."


def more_than_creditable(conn: Connection[Any], asked: Any) -> str:
    """Say how much credit can still be given for the invoice."""
    found = invoices.find(conn, invoice=asked.reference)
    if found is None:
        return f"{_wanted(asked)} is more than {asked.words} is worth."
    left = found["amount_minor"] - found["credited_minor"]
    return (
        f"Credit of {money.exact(left, found['currency'])} can still be given for invoice {found['id']}, {_so(asked, left=left)}."
    )


def more_than_refundable(conn: Connection[Any], asked: Any) -> str:
    """Say how much of the payment can still be refunded."""
    found = invoices.find(conn, invoice=asked.reference)
    if found is None:
        return f"{_wanted(asked)} is more than was paid for {asked.words}."
    left = found["refundable_minor"] or 0
    return f"{money.exact(left, found['currency'])} of invoice {found['id']} can still be refunded, {_so(asked, left=left)}."


def _account(conn: Connection[Any], asked: Any) -> dict[str, Any]:
    statement = "SELECT balance_minor, currency FROM public.billing_credit_account WHERE customer_id = %(customer_id)s"
    found = rows.one(conn, statement, {"customer_id": asked.customer_id})
    if found is None:
        raise LookupError(asked.customer_id)
    return found


def _wanted(asked: Any) -> str:
    return money.format(asked.amount_minor, asked.currency)


def _so(asked: Any, *, left: int) -> str:
    """Return what follows from what is left: for this call, or for the calls of its step together."""
    return f"so {_wanted(asked)} cannot be used" if asked.amount_minor > left else "and the calls of this step together use more"


SENTENCES: dict[str, Sentence] = {
    # the balance and its entries
    "billing_credit_balance_not_negative": balance_too_low,
    "billing_credit_entry_balance_not_negative": balance_too_low,
    "billing_credit_balance_bounded": TOO_LARGE,
    "billing_credit_balance_is_sum": OUR_FAULT,
    "balance_is_sum": OUR_FAULT,
    "billing_credit_account_pkey": OUR_FAULT,
    "billing_credit_account_currency": wrong_currency,
    "billing_credit_entry_pkey": OUR_FAULT,
    "billing_credit_entry_number": OUR_FAULT,
    "billing_credit_entry_not_zero": "An amount of zero changes nothing.",
    "billing_credit_entry_kind_known": OUR_FAULT,
    "billing_credit_entry_customer_currency": wrong_currency,
    "billing_credit_entry_invoice": "The invoice does not exist.",
    "billing_credit_entry_credit_memo": "The credit memo does not exist.",
    # invoices
    "billing_invoice_pkey": OUR_FAULT,
    "billing_invoice_of_customer": OUR_FAULT,
    "billing_invoice_one_per_period": period_taken,
    "billing_invoice_period_is_month": "A billing period is named by the first day of its month.",
    "billing_invoice_amount_positive": TOO_LARGE,
    "billing_invoice_due_within_amount": more_than_due,
    "billing_invoice_credit_memo_cap": more_than_creditable,
    "billing_invoice_status_known": OUR_FAULT,
    "billing_invoice_paid_has_time": OUR_FAULT,
    "billing_invoice_customer_currency": wrong_currency,
    # credit memos
    "billing_credit_memo_pkey": OUR_FAULT,
    "billing_credit_memo_of_customer": OUR_FAULT,
    "billing_credit_memo_amount_positive": "A credit memo needs an amount above zero.",
    "billing_credit_memo_customer_currency": wrong_currency,
    "billing_credit_memo_invoice": "The invoice does not exist.",
    # payments and refunds
    "billing_payment_pkey": OUR_FAULT,
    "billing_payment_of_customer": OUR_FAULT,
    "billing_payment_one_of_invoice": OUR_FAULT,
    "billing_payment_amount_positive": OUR_FAULT,
    "billing_payment_provider_invoice_form": OUR_FAULT,
    "billing_payment_refund_cap": more_than_refundable,
    "billing_payment_provider_payment_id_key": OUR_FAULT,
    "billing_payment_customer_currency": wrong_currency,
    "billing_payment_invoice": "The invoice does not exist.",
    "billing_refund_pkey": OUR_FAULT,
    "billing_refund_of_customer": OUR_FAULT,
    "billing_refund_one_in_flight": "A refund of this payment is under way. Wait for its outcome before asking for another.",
    "billing_refund_amount_positive": "A refund needs an amount above zero.",
    "billing_refund_status_known": OUR_FAULT,
    "billing_refund_provider_refund_id_key": OUR_FAULT,
    "billing_refund_provider_credit_note_id_key": OUR_FAULT,
    "billing_refund_credit_note_follows": OUR_FAULT,
    "billing_refund_customer_currency": wrong_currency,
    "billing_refund_payment": "The payment does not exist.",
    # what leaves
    "outbox_message_once": QUEUED_ALREADY,
    "outbox_message_pkey": OUR_FAULT,
    "outbox_message_uid_key": OUR_FAULT,
    "outbox_message_one_in_flight": QUEUED_ALREADY,
    "outbox_message_state_known": OUR_FAULT,
    "outbox_message_repeat_known": OUR_FAULT,
    "outbox_message_leased_has_lease": OUR_FAULT,
    "outbox_message_final_is_finished": OUR_FAULT,
    "outbox_message_cancelled_unsent": OUR_FAULT,
}
