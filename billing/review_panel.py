"""The money that a reviewer weighs: the invoices that the calls name, the customer's last 30 days, and both after the batch.

What would be is read from a preview's row changes, never computed a second time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q, Sum
from django.utils import timezone

from billing import money
from billing.models import Customer, Invoice, Payment, Refund
from outbox import transitions
from outbox.models import Message

Row = Mapping[str, Any]
MOST = 3  # invoices
DAYS = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One amount; `would` marks what the batch makes of the line above it."""

    label: str
    value: str
    would: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """Amounts under one heading."""

    title: str
    lines: list[Line]


def context(customer_id: int, *, calls: Sequence[Row], changes: Sequence[Row] | None) -> dict[str, Any]:
    """Return what `billing/review_panel.html` shows; `changes` None: nobody knows what the batch would do."""
    customer = Customer.objects.select_related("credit").get(id=customer_id)
    invoices = _named(customer, calls)
    sections = [_invoice(invoice, changes) for invoice in invoices]
    return {"subject": customer, "sections": [*sections, _customer(customer, changes, since=timezone.now() - DAYS)]}


def _named(customer: Customer, calls: Sequence[Row]) -> list[Invoice]:
    """Return the invoices that the calls name, by id or by period."""
    arguments = [call.get("arguments") or {} for call in calls]
    ids = {given["invoice_id"] for given in arguments if isinstance(given.get("invoice_id"), int)}
    periods = {day for given in arguments if (day := _day(given.get("billing_period")))}
    if not ids and not periods:
        return []
    found = Invoice.objects.filter(customer=customer).filter(Q(id__in=ids) | Q(billing_period__in=periods) & ~Q(status="void"))
    return list(found.order_by("billing_period", "id")[:MOST])


def _day(text: Any) -> date | None:
    try:
        return date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _invoice(invoice: Invoice, changes: Sequence[Row] | None) -> Section:
    """Return the payment of an invoice, or what is due of it while nothing is paid."""
    title = f"Invoice {invoice.id}, {invoice.billing_period:%B %Y}"
    payment = Payment.objects.filter(invoice=invoice, stray=False).order_by("-id").first()
    if payment is None:
        after = _after(changes, table="billing_invoice", row=invoice.id).get("amount_due_minor")
        lines = [
            Line(label="Amount", value=money.format(invoice.amount_minor, invoice.currency)),
            Line(label="Due", value=money.format(invoice.amount_due_minor, invoice.currency)),
        ]
        return Section(title=title, lines=[*lines, *_would("Due after this", after, invoice.currency)])
    after = _after(changes, table="billing_payment", row=payment.id).get("refunded_minor")
    left = None if after is None else payment.amount_minor - after
    lines = [
        Line(label="Paid", value=money.format(payment.amount_minor, payment.currency)),
        Line(label="Refunded so far", value=money.format(payment.refunded_minor, payment.currency)),
        Line(label="Still refundable", value=money.format(payment.amount_minor - payment.refunded_minor, payment.currency)),
        *_at_provider(payment),
    ]
    return Section(title=title, lines=[*lines, *_would("After this", left, payment.currency)])


def _at_provider(payment: Payment) -> list[Line]:
    """Return the invoice at the provider that a refund is credited on, and the notes that it has by now."""
    if payment.provider_invoice_id is None:
        return []
    notes = Refund.objects.filter(payment=payment, provider_credit_note_id__isnull=False).order_by("id")
    named = ", ".join(notes.values_list("provider_credit_note_id", flat=True))
    return [
        Line(label="Provider’s invoice", value=payment.provider_invoice_id),
        Line(label="Credit notes there", value=named or "none"),
    ]


def _customer(customer: Customer, changes: Sequence[Row] | None, *, since: datetime) -> Section:
    code, balance = customer.currency, customer.credit.balance_minor
    paid = _sum(Payment.objects.filter(customer=customer, paid_at__gte=since))
    refunded = _sum(Refund.objects.filter(customer=customer, created_at__gte=since, status__in=["queued", "confirmed"]))
    more = sum(row["after"]["amount_minor"] for row in _of(changes, table="billing_refund") if row["operation"] == "INSERT")
    after = _after(changes, table="billing_credit_account", row=customer.id).get("balance_minor")
    lines = [
        Line(label="Credit balance", value=money.format(balance, code)),
        *_would("Balance after this", after if after != balance else None, code),
        Line(label="Paid", value=money.format(paid, code)),
        Line(label="Refunded", value=money.format(refunded, code)),
        *_would("Refunded with this", refunded + more if more else None, code),
        Line(label="Open invoices", value=_open(customer)),
        Line(label="In flight", value=_in_flight(customer)),
    ]
    return Section(title="Customer, 30 days", lines=lines)


def _would(label: str, minor: int | None, currency: str) -> list[Line]:
    return [] if minor is None else [Line(label=label, value=money.format(minor, currency), would=True)]


def _of(changes: Sequence[Row] | None, *, table: str) -> Iterable[Row]:
    return (row for row in changes or () if row["table_name"] == table and row.get("after"))


def _after(changes: Sequence[Row] | None, *, table: str, row: int) -> Row:
    """Return a row as the batch would leave it; nothing when it does not touch it."""
    images = [change["after"] for change in _of(changes, table=table)]
    return next((image for image in reversed(images) if image.get("id", image.get("customer_id")) == row), {})


def _sum(rows: Any) -> int:
    return rows.aggregate(total=Sum("amount_minor"))["total"] or 0


def _open(customer: Customer) -> str:
    unpaid = Invoice.objects.filter(customer=customer).exclude(status__in=["paid", "void"])
    due = list(unpaid.values_list("amount_due_minor", flat=True))
    return f"{len(due)}, {money.format(sum(due), customer.currency)} due" if due else "none"


def _in_flight(customer: Customer) -> str:
    count = Message.objects.filter(subject=customer.id, topic__startswith="payment.", state__in=transitions.UNFINISHED).count()
    return {0: "nothing", 1: "1 message"}.get(count, f"{count} messages")
