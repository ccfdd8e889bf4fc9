"""What stands beside a conversation: the customer's money and what is in flight at the provider. Read by the ORM."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from billing import money
from billing.models import CreditEntry, Customer, Invoice, Payment, Refund
from ledger.marks import Mark
from outbox import fates, transitions
from outbox.models import Message

LINES = 10  # of each list
MARKS = {  # of invoices that are neither paid nor void
    "draft": Mark(state="queued", icon="circle-dashed", word="Draft"),
    "charge_queued": Mark(state="queued", icon="clock", word="Charge queued"),
    "charge_failed": Mark(state="failed", icon="ban", word="Refused"),
}
TITLES = {"payment.charge": "Charge", "payment.refund": "Refund", "payment.credit_note": "Credit note"}


def context(customer_id: int) -> dict[str, Any]:
    """Return everything that `billing/customer_panel.html` shows; raise Customer.DoesNotExist."""
    customer = Customer.objects.select_related("credit").get(id=customer_id)
    return {
        "customer": customer,
        "balance": money.format(customer.credit.balance_minor, customer.currency),
        "balance_before": _before(customer),
        "in_flight": _in_flight(customer),
        "open_invoices": _open_invoices(customer),
        "payments": _payments(customer),
        "refunded": money.format(_refunded(customer, since=timezone.now() - timedelta(days=30)), customer.currency),
    }


def _before(customer: Customer) -> dict[str, Any] | None:
    entry = CreditEntry.objects.filter(customer=customer).order_by("-number").first()
    if entry is None or entry.number == 1:
        return None
    return {"amount": money.format(entry.balance_after_minor - entry.amount_minor, entry.currency), "until": entry.created_at}


def _in_flight(customer: Customer) -> list[dict[str, Any]]:
    messages = Message.objects.filter(subject=customer.id, topic__in=TITLES, state__in=transitions.UNFINISHED)
    return [
        {
            "what": f"{TITLES[message.topic]} {money.format(message.payload['amount_minor'], message.payload['currency'])}",
            "provider_id": _short(message.provider_id),
            "at": message.created_at,
            "mark": fates.fate(message),
        }
        for message in messages.order_by("-id")[:LINES]
    ]


def _open_invoices(customer: Customer) -> list[dict[str, Any]]:
    invoices = Invoice.objects.filter(customer=customer).exclude(status__in=["paid", "void"]).order_by("billing_period", "id")
    return [
        {
            "id": invoice.id,
            "period": invoice.billing_period,
            "due": money.format(invoice.amount_due_minor, invoice.currency),
            "due_at": invoice.created_at + timedelta(days=customer.terms_days),
            "mark": MARKS[invoice.status],
        }
        for invoice in invoices[:LINES]
    ]


def _payments(customer: Customer) -> list[dict[str, Any]]:
    payments = Payment.objects.filter(customer=customer).order_by("-paid_at", "-id")[:LINES]
    return [
        {
            "amount": money.format(payment.amount_minor, payment.currency),
            "invoice_id": payment.invoice_id,
            "refunded": payment.refunded_minor and money.format(payment.refunded_minor, payment.currency),
            "at": payment.paid_at,
            "stray": payment.stray,
            "provider_invoice_id": payment.provider_invoice_id,
        }
        for payment in payments
    ]


def _refunded(customer: Customer, *, since: datetime) -> int:
    """Return the minor units of refunds asked for since then: queued and confirmed ones."""
    refunds = Refund.objects.filter(customer=customer, created_at__gte=since, status__in=["queued", "confirmed"])
    return refunds.aggregate(total=Sum("amount_minor"))["total"] or 0


def _short(provider_id: str | None) -> str:
    if not provider_id:
        return "no id yet"
    return f"{provider_id.partition('_')[0]}_…{provider_id[-4:]}"
