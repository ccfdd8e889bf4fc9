"""The tools of billing: what the model may ask for. To add one, write its arguments and add a Tool to TOOLS.

What a tool does is in the verbs; here is what the model reads about it and what people read about a call.
"""

import re
from datetime import date
from typing import Annotated, Any, Self

from psycopg import Connection
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from agent.tools import LARGEST_AMOUNT, Amount, Arguments, Result, Tool
from billing import credit_memos, credits, customers, invoices, money, refunds  # noqa: A004
from billing.invoices import Reference
from outbox.messages import Cause

Conn = Connection[Any]
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")  # all but tab and line feed


def _as_date(value: Any) -> Any:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not DAY.fullmatch(value):
        raise ValueError("write the first day of the month as YYYY-MM-DD, such as 2026-11-01")
    return date.fromisoformat(value)


def _as_period(day: date) -> date:
    if day.day != 1:
        raise ValueError(f"a billing period is named by the first day of its month: {day.replace(day=1)}")
    if not 2000 <= day.year <= 2099:
        raise ValueError("a billing period is between 2000-01-01 and 2099-12-01")
    return day


def _as_text(text: str) -> str:
    if CONTROLS.search(text):
        raise ValueError("the text has control characters")
    return text


Period = Annotated[date, BeforeValidator(_as_date), AfterValidator(_as_period)]
Reason = Annotated[str, StringConstraints(min_length=3, max_length=500, strip_whitespace=True), AfterValidator(_as_text)]
Question = Annotated[str, StringConstraints(min_length=3, max_length=2000, strip_whitespace=True), AfterValidator(_as_text)]
MINOR = "In minor units, such as 48000 for €480.00 (and 48000 for ¥48,000)."
Minor = Annotated[int, Field(gt=0, le=LARGEST_AMOUNT, description=MINOR)]
CODE = StringConstraints(pattern=r"^[A-Z]{3}$")
Currency = Annotated[str, CODE, Field(description="ISO 4217 code: the customer's currency.")]
PERIOD = "First day of the invoice's month as YYYY-MM-DD, instead of invoice_id."


class OfInvoice(Arguments):
    """What names one invoice: exactly one of its id and its billing period."""

    invoice_id: int | None = Field(default=None, gt=0, le=2**63 - 1, description="The invoice's id, instead of billing_period.")
    billing_period: Period | None = Field(default=None, description=PERIOD)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.invoice_id is None) == (self.billing_period is None):
            raise ValueError("give exactly one of invoice_id and billing_period")
        return self

    @property
    def reference(self) -> Reference:
        """Return the same for a verb."""
        return Reference(customer_id=self.customer_id, invoice_id=self.invoice_id, billing_period=self.billing_period)

    @property
    def words(self) -> str:
        """Return the same for a sentence."""
        return f"invoice {self.invoice_id}" if self.invoice_id else f"the invoice of {self.billing_period:%B %Y}"


class LookUpCustomer(Arguments):
    """Read the customer's credit balance, open and last invoices, and payments that can be refunded. Changes nothing."""


class CreateInvoice(Arguments):
    """Create a draft invoice for one month. There can be only one for a month, except void ones. Nothing is charged yet."""

    billing_period: Period = Field(description="First day of the month that the invoice is for, as YYYY-MM-DD.")
    amount_minor: Minor
    currency: Currency
    description: Annotated[str, AfterValidator(_as_text)] = Field(
        default="", max_length=500, description="What the invoice is for, as the customer reads it."
    )


class ApplyCredit(OfInvoice):
    """Use the customer's credit. With invoice_id or billing_period it lowers what is due of that invoice (a draft, or one
    whose charge failed). Without either it deducts the balance, for credit that leaves another way, as by a refund."""

    amount_minor: Minor
    currency: Currency

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if self.invoice_id is not None and self.billing_period is not None:
            raise ValueError("give invoice_id or billing_period or neither of them, not both")
        return self

    @property
    def to_invoice(self) -> bool:
        """Say whether an invoice is named."""
        return self.invoice_id is not None or self.billing_period is not None


class IssueCreditMemo(OfInvoice):
    """Give the customer credit for an invoice, such as for an outage or a doubled seat: the credit balance rises. All
    credit memos of an invoice together cannot exceed its amount. Money for the card is QueueRefund, not this."""

    amount_minor: Minor
    currency: Currency
    reason: Reason = Field(description="Why, as the customer reads it on the credit memo.")


class VoidInvoice(OfInvoice):
    """Void a draft invoice, or one whose charge failed. Credit that it had used returns to the balance. A paid invoice
    cannot be voided: refund it or issue a credit memo."""

    reason: Reason = Field(description="Why, for our own records.")


class QueueCharge(OfInvoice):
    """Charge an invoice to the customer's card on file. The amount must be exactly what is due, after any credit that was
    applied; with 0 due the invoice is paid at once. The provider's answer comes later, as a notice."""

    amount_minor: int = Field(ge=0, le=LARGEST_AMOUNT, description="What is due of the invoice, in minor units.")
    currency: Currency


class QueueRefund(OfInvoice):
    """Refund a paid invoice, or a part of it, to the card that paid it. All refunds of an invoice together cannot exceed
    its payment, and only one can be under way. The provider's answer comes later, as a notice."""

    amount_minor: Minor
    currency: Currency
    reason: Reason = Field(description="Why, for our own records.")


class AskHuman(Arguments):
    """Ask a person of the company when you are unsure what is right, or when none of the tools can do what is needed. It
    must be the only call of the step; the answer comes as the next message."""

    question: Question = Field(description="One question, with the facts that a person needs to answer it.")


def look_up_customer(conn: Conn, asked: LookUpCustomer, cause: Cause) -> Result:
    """Run LookUpCustomer."""
    return customers.look_up(conn, customer_id=asked.customer_id)


def create_invoice(conn: Conn, asked: CreateInvoice, cause: Cause) -> Result:
    """Run CreateInvoice."""
    return invoices.create(
        conn,
        customer_id=asked.customer_id,
        billing_period=asked.billing_period,
        amount_minor=asked.amount_minor,
        currency=asked.currency,
        description=asked.description,
    )


def apply_credit(conn: Conn, asked: ApplyCredit, cause: Cause) -> Result:
    """Run ApplyCredit."""
    if asked.to_invoice:
        return credits.apply(conn, invoice=asked.reference, amount_minor=asked.amount_minor, currency=asked.currency)
    return credits.pay_out(conn, customer_id=asked.customer_id, amount_minor=asked.amount_minor, currency=asked.currency)


def issue_credit_memo(conn: Conn, asked: IssueCreditMemo, cause: Cause) -> Result:
    """Run IssueCreditMemo."""
    return credit_memos.issue(
        conn, invoice=asked.reference, amount_minor=asked.amount_minor, currency=asked.currency, reason=asked.reason
    )


def void_invoice(conn: Conn, asked: VoidInvoice, cause: Cause) -> Result:
    """Run VoidInvoice."""
    return invoices.void(conn, invoice=asked.reference)


def queue_charge(conn: Conn, asked: QueueCharge, cause: Cause) -> Result:
    """Run QueueCharge."""
    return invoices.queue_charge(
        conn, invoice=asked.reference, amount_minor=asked.amount_minor, currency=asked.currency, cause=cause
    )


def queue_refund(conn: Conn, asked: QueueRefund, cause: Cause) -> Result:
    """Run QueueRefund."""
    return refunds.request(
        conn,
        invoice=asked.reference,
        amount_minor=asked.amount_minor,
        currency=asked.currency,
        reason=asked.reason,
        cause=cause,
    )


def ask_human(conn: Conn, asked: AskHuman, cause: Cause) -> Result:
    """Run AskHuman: asking changes nothing of the customer's."""
    return {"status": "asked"}


def _amount(asked: Any) -> Amount:
    return Amount(minor=asked.amount_minor, currency=asked.currency)


def _money(asked: Any) -> str:
    return money.format(asked.amount_minor, asked.currency)


def _result(result: Result, name: str) -> str:
    return money.format(result[name], result["currency"])


def _credit_proposed(asked: ApplyCredit) -> str:
    return f"Use {_money(asked)} of credit " + (f"for {asked.words}" if asked.to_invoice else "outside an invoice")


def _credit_applied(asked: ApplyCredit, result: Result) -> str:
    balance = _result(result, "credit_balance_minor")
    if not asked.to_invoice:
        return f"Deducted {_money(asked)} of credit; the balance is now {balance}"
    due = _result(result, "amount_due_minor")
    return f"Used {_money(asked)} of credit for invoice {result['invoice_id']}; {due} is due, the balance is now {balance}"


def _void_applied(asked: VoidInvoice, result: Result) -> str:
    used = result["returned_credit_minor"]
    returned = f"; {_result(result, 'returned_credit_minor')} of credit is back" if used else ""
    return f"Voided invoice {result['invoice_id']}{returned}"


def _charge_proposed(asked: QueueCharge) -> str:
    return f"Charge {_money(asked)} for {asked.words}" if asked.amount_minor else f"Close {asked.words}: nothing is due"


def _charge_applied(asked: QueueCharge, result: Result) -> str:
    if not asked.amount_minor:
        return f"Invoice {result['invoice_id']} is paid: nothing was due"
    return f"Charge {_money(asked)} to card {result['card_last4']} for invoice {result['invoice_id']}"


MONEY = ("amount_minor", "currency")
TOOLS = [
    Tool(
        name="LookUpCustomer",
        arguments=LookUpCustomer,
        run=look_up_customer,
        proposed=lambda asked: f"Look up customer {asked.customer_id}",
        applied=lambda asked, result: f"Looked up {result['name']}",
        writes=False,
        independent="It only reads (tests/billing/test_independence.py).",
    ),
    Tool(
        name="CreateInvoice",
        arguments=CreateInvoice,
        run=create_invoice,
        proposed=lambda asked: f"Create an invoice of {_money(asked)} for {asked.billing_period:%B %Y}",
        applied=lambda asked, result: (
            f"Created invoice {result['invoice_id']} of {_money(asked)} for {asked.billing_period:%B %Y}"
        ),
        amount=_amount,
        hold_above=500_000,
        effect=("billing_period", *MONEY),
    ),
    Tool(
        name="ApplyCredit",
        arguments=ApplyCredit,
        run=apply_credit,
        proposed=_credit_proposed,
        applied=_credit_applied,
        amount=_amount,
        hold_above=100_000,
        effect=("invoice_id", *MONEY),
    ),
    Tool(
        name="IssueCreditMemo",
        arguments=IssueCreditMemo,
        run=issue_credit_memo,
        proposed=lambda asked: f"Issue a credit memo of {_money(asked)} on {asked.words}",
        applied=lambda asked, result: (
            f"Issued a credit memo of {_money(asked)} on invoice {result['invoice_id']}; the balance is now"
            f" {_result(result, 'credit_balance_minor')}"
        ),
        amount=_amount,
        hold_above=50_000,
        second_above=250_000,
        effect=("invoice_id", *MONEY),
        again_after=24,
    ),
    Tool(
        name="VoidInvoice",
        arguments=VoidInvoice,
        run=void_invoice,
        proposed=lambda asked: f"Void {asked.words}",
        applied=_void_applied,
        independent=(
            "Voiding an invoice gives back the credit that this one had used and touches no other invoice: one that stays"
            " because it cannot be voided is no reason to keep the rest (tests/billing/test_independence.py)."
        ),
        effect=("invoice_id",),
    ),
    Tool(
        name="QueueCharge",
        arguments=QueueCharge,
        run=queue_charge,
        proposed=_charge_proposed,
        applied=_charge_applied,
        amount=_amount,
        hold_above=500_000,
        effect=("invoice_id", *MONEY),
    ),
    Tool(
        name="QueueRefund",
        arguments=QueueRefund,
        run=queue_refund,
        proposed=lambda asked: f"Refund {_money(asked)} of {asked.words}",
        applied=lambda asked, result: f"Refund {_money(asked)} of invoice {result['invoice_id']} to card {result['card_last4']}",
        amount=_amount,
        hold_above=25_000,
        second_above=250_000,
        effect=("invoice_id", *MONEY),
        again_after=24,
    ),
    Tool(
        name="AskHuman",
        arguments=AskHuman,
        run=ask_human,
        proposed=lambda asked: f"Ask a person: {asked.question}",
        applied=lambda asked, result: f"Asked a person: {asked.question}",
        writes=False,
        asks_person=True,
    ),
]
