"""The verbs of an invoice: find, create, queue a charge, void. One statement each, in the caller's transaction.

Every verb locks the customer's credit account first, then the invoice, then the payment: two steps about one
customer queue up and never wait for each other in a circle.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any

from psycopg import Connection

from billing import money, rows
from ledger.refusals import Refusal
from outbox import messages
from outbox.messages import Cause

FIND = """
SELECT i.id, i.billing_period, i.currency, i.amount_minor, i.amount_due_minor, i.credited_minor, i.status,
       p.amount_minor - p.refunded_minor AS refundable_minor
FROM public.billing_invoice i
LEFT JOIN public.billing_payment p ON p.customer_id = i.customer_id AND p.invoice_id = i.id AND NOT p.stray
WHERE i.customer_id = %(customer_id)s
  AND (i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void')
ORDER BY p.id DESC LIMIT 1
"""
CREATE = """
INSERT INTO public.billing_invoice (customer_id, billing_period, description, currency, amount_minor, amount_due_minor)
SELECT a.customer_id, %(billing_period)s, %(description)s, %(currency)s, %(amount_minor)s, %(amount_minor)s
FROM public.billing_credit_account a WHERE a.customer_id = %(customer_id)s FOR NO KEY UPDATE
RETURNING id, status
"""
QUEUE_CHARGE = """
WITH account AS (
    SELECT a.customer_id, c.provider_customer_id, c.provider_payment_method, c.card_last4
    FROM public.billing_credit_account a JOIN public.billing_customer c ON c.id = a.customer_id
    WHERE a.customer_id = %(customer_id)s FOR NO KEY UPDATE OF a
), found AS (
    SELECT i.id, i.status, i.currency, i.amount_due_minor, i.charge_attempt
    FROM public.billing_invoice i JOIN account ON account.customer_id = i.customer_id
    WHERE i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void'
    FOR NO KEY UPDATE OF i
), queued AS (
    UPDATE public.billing_invoice i
    SET status = CASE WHEN %(amount_minor)s = 0 THEN 'paid' ELSE 'charge_queued' END,
        paid_at = CASE WHEN %(amount_minor)s = 0 THEN now() END,
        charge_attempt = i.charge_attempt + CASE WHEN %(amount_minor)s = 0 THEN 0 ELSE 1 END
    FROM found, account
    WHERE i.id = found.id AND found.status IN ('draft', 'charge_failed')
      AND found.currency = %(currency)s AND found.amount_due_minor = %(amount_minor)s
      AND (%(amount_minor)s = 0 OR account.provider_customer_id IS NOT NULL AND account.provider_payment_method IS NOT NULL)
    RETURNING i.status, i.charge_attempt
)
SELECT found.id, found.status AS status_before, found.currency, found.amount_due_minor, queued.status, queued.charge_attempt,
       account.provider_customer_id, account.provider_payment_method, account.card_last4
FROM account LEFT JOIN found ON true LEFT JOIN queued ON true
"""
VOID = """
WITH account AS (
    SELECT a.customer_id, a.balance_minor FROM public.billing_credit_account a
    WHERE a.customer_id = %(customer_id)s FOR NO KEY UPDATE
), found AS (
    SELECT i.id, i.customer_id, i.status, i.currency, i.amount_minor, i.amount_due_minor, i.credited_minor,
           i.amount_minor - i.amount_due_minor AS used_minor
    FROM public.billing_invoice i JOIN account ON account.customer_id = i.customer_id
    WHERE i.id = %(invoice_id)s::bigint OR i.billing_period = %(billing_period)s::date AND i.status <> 'void'
    FOR NO KEY UPDATE OF i
), voided AS (
    UPDATE public.billing_invoice i SET status = 'void', amount_due_minor = i.amount_minor FROM found
    WHERE i.id = found.id AND found.status IN ('draft', 'charge_failed') AND found.credited_minor = 0
    RETURNING i.status
), returned AS (
    UPDATE public.billing_credit_account a SET balance_minor = a.balance_minor + found.used_minor, entries = a.entries + 1
    FROM found, voided WHERE a.customer_id = found.customer_id AND found.used_minor > 0
    RETURNING a.balance_minor, a.entries
), entry AS (
    INSERT INTO public.billing_credit_entry
        (customer_id, number, currency, amount_minor, balance_after_minor, kind, invoice_id)
    SELECT found.customer_id, returned.entries, found.currency, found.used_minor, returned.balance_minor, 'returned', found.id
    FROM found, returned
)
SELECT found.id, found.status AS status_before, found.currency, found.credited_minor, found.used_minor, voided.status,
       coalesce(returned.balance_minor, account.balance_minor) AS balance_minor
FROM account LEFT JOIN found ON true LEFT JOIN voided ON true LEFT JOIN returned ON true
"""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Names one invoice of a customer: by its id, or by the first day of its billing period (never a void one)."""

    customer_id: int
    invoice_id: int | None = None
    billing_period: date | None = None

    def parameters(self) -> dict[str, Any]:
        """Return what the statements call the three of them."""
        return {"customer_id": self.customer_id, "invoice_id": self.invoice_id, "billing_period": self.billing_period}

    def missing(self) -> Refusal:
        """Return the refusal for an invoice that is not there, or not this customer's: nobody learns which."""
        if self.invoice_id is not None:
            return Refusal(f"Invoice {self.invoice_id} does not exist.")
        return Refusal(f"There is no invoice for {self.billing_period:%B %Y}.")


def find(conn: Connection[Any], *, invoice: Reference) -> dict[str, Any] | None:
    """Return an invoice and what of its payment can be refunded (minor units), or None."""
    return rows.one(conn, FIND, invoice.parameters())


def create(
    conn: Connection[Any], *, customer_id: int, billing_period: date, amount_minor: int, currency: str, description: str = ""
) -> dict[str, Any]:
    """Create a draft invoice; the database refuses a second one for the period and another currency than the customer's."""
    asked = {"customer_id": customer_id, "billing_period": billing_period, "amount_minor": amount_minor, "currency": currency}
    row = rows.one(conn, CREATE, asked | {"description": description})
    if row is None:
        raise unknown_customer(customer_id)
    return {
        "invoice_id": row["id"],
        "billing_period": billing_period.isoformat(),
        "status": row["status"],
        "amount_minor": amount_minor,
        "amount_due_minor": amount_minor,
        "currency": currency,
    }


def queue_charge(conn: Connection[Any], *, invoice: Reference, amount_minor: int, currency: str, cause: Cause) -> dict[str, Any]:
    """Queue the charge of exactly what is due; an invoice with nothing due is paid at once, without a charge."""
    check_payable(amount_minor, currency)
    row = rows.one(conn, QUEUE_CHARGE, invoice.parameters() | {"amount_minor": amount_minor, "currency": currency})
    if row is None:
        raise unknown_customer(invoice.customer_id)
    if row["status"] is None:
        raise _not_charged(row, invoice, amount_minor, currency)
    if amount_minor:
        _enqueue_charge(conn, row, invoice.customer_id, cause)
    return {
        "invoice_id": row["id"],
        "status": row["status"],
        "amount_minor": amount_minor,
        "currency": currency,
        "card_last4": row["card_last4"] if amount_minor else None,
    }


def void(conn: Connection[Any], *, invoice: Reference) -> dict[str, Any]:
    """Void a draft or an invoice whose charge failed, and return the credit that it had used to the balance."""
    row = rows.one(conn, VOID, invoice.parameters())
    if row is None:
        raise unknown_customer(invoice.customer_id)
    if row["status"] is None:
        raise _not_voided(row, invoice)
    return {
        "invoice_id": row["id"],
        "status": row["status"],
        "returned_credit_minor": row["used_minor"],
        "credit_balance_minor": row["balance_minor"],
        "currency": row["currency"],
    }


def changed(row: dict[str, Any] | None, *, invoice: Reference, by: str) -> dict[str, Any]:
    """Return the row of a statement that changes something for an invoice; raise Refusal when its column `by` is empty."""
    if row is None:
        raise unknown_customer(invoice.customer_id)
    if row["invoice_id"] is None:
        raise invoice.missing()
    if row[by] is None:
        raise wrong_state(row["invoice_id"], row["status_before"])
    return row


def unknown_customer(customer_id: int) -> Refusal:
    """Return the refusal for a customer who is not there, or not this conversation's."""
    return Refusal(f"Customer {customer_id} does not exist in this conversation.")


def wrong_state(invoice_id: int, status: str) -> Refusal:
    """Return the refusal for an invoice whose status does not allow what was asked."""
    return Refusal(
        {
            "draft": f"Invoice {invoice_id} is a draft: it was not paid.",
            "charge_queued": f"Invoice {invoice_id} has a charge under way; wait until the provider has answered.",
            "paid": f"Invoice {invoice_id} is already paid.",
            "charge_failed": f"Invoice {invoice_id} was not paid: its last charge was refused.",
            "void": f"Invoice {invoice_id} is void.",
        }[status]
    )


def check_payable(amount_minor: int, currency: str) -> None:
    """Refuse an amount that the provider cannot move, before anything is promised."""
    try:
        money.to_provider(amount_minor, currency)
    except money.NotPayable as error:
        raise Refusal(str(error)) from error


def _not_charged(row: dict[str, Any], invoice: Reference, amount_minor: int, currency: str) -> Refusal:
    if row["id"] is None:
        return invoice.missing()
    if row["status_before"] not in ("draft", "charge_failed"):
        return wrong_state(row["id"], row["status_before"])
    if row["currency"] != currency:
        return Refusal(f"Invoice {row['id']} is in {row['currency']}, so it cannot be charged in {currency}.")
    if row["amount_due_minor"] != amount_minor:
        due, asked = money.exact(row["amount_due_minor"], currency), money.format(amount_minor, currency)
        return Refusal(f"Invoice {row['id']} has {due} due, so a charge of {asked} is not possible: charge what is due.")
    return Refusal(f"Customer {invoice.customer_id} has no card on file, so nothing can be charged.")


def _not_voided(row: dict[str, Any], invoice: Reference) -> Refusal:
    if row["id"] is None:
        return invoice.missing()
    if row["status_before"] not in ("draft", "charge_failed"):
        return wrong_state(row["id"], row["status_before"])
    credited = money.format(row["credited_minor"], row["currency"])
    return Refusal(f"Invoice {row['id']} has credit memos of {credited}, so it cannot be voided.")


def _enqueue_charge(conn: Connection[Any], row: dict[str, Any], customer_id: int, cause: Cause) -> None:
    messages.enqueue(
        conn,
        topic="payment.charge",
        aggregate=f"invoice:{row['id']}",
        dedupe_key=f"charge:invoice:{row['id']}:{row['charge_attempt']}",
        payload={
            "invoice_id": row["id"],
            "customer_id": customer_id,
            "amount_minor": row["amount_due_minor"],
            "currency": row["currency"],
            "provider_customer_id": row["provider_customer_id"],
            "provider_payment_method": row["provider_payment_method"],
            "card_last4": row["card_last4"],
        },
        cause=cause,
    )
