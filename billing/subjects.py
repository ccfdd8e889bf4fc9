"""Customers as the subjects of conversations: found, named, told to the model, and shown beside the chat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Q, When
from psycopg import Connection

from billing import customer_panel, review_panel
from billing.models import CreditMemo, Customer, Invoice, Payment, Refund

OWNED: dict[str, Any] = {"invoice": Invoice, "payment": Payment, "refund": Refund, "credit memo": CreditMemo}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a conversation is about, in words for a list."""

    id: int
    name: str
    detail: str


def search(text: str, limit: int = 20) -> list[Subject]:
    """Return at most `limit` customers whose id the text is (first), or whose name or e-mail holds it; all for an empty text."""
    text = text.strip().replace("\x00", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
    wanted = Q(name__icontains=text) | Q(email__icontains=text) | Q(id=number)
    best_first = Case(When(id=number, then=0), default=1)
    return [_subject(customer) for customer in Customer.objects.filter(wanted).order_by(best_first, "name", "id")[:limit]]


def find(subject_id: int) -> Subject | None:
    """Return the customer of that id, or None."""
    customer = Customer.objects.filter(id=subject_id).first()
    return customer and _subject(customer)


def owner(thing: str, number: int) -> int | None:
    """Return whose thing of that number it is, such as ("invoice", 20); None for what does not exist or has no numbers."""
    model = OWNED.get(thing)
    found: int | None = model.objects.filter(id=number).values_list("customer_id", flat=True).first() if model else None
    return found


def names(ids: Any) -> dict[int, str]:
    """Return the names of the customers that exist among `ids`."""
    return dict(Customer.objects.filter(id__in=list(ids)).values_list("id", "name"))


def prompt_lines(conn: Connection[Any], subject_id: int) -> list[str]:
    """Return the facts about the customer that every system prompt carries.

    Opens its own transaction, because the customer is visible only while it is the transaction's subject.
    """
    with conn.transaction():
        conn.execute("SELECT set_config('backstop.subject', %s, true)", (str(subject_id),))
        found = conn.execute("SELECT currency FROM public.billing_customer WHERE id = %s", (subject_id,)).fetchone()
    return [f"customer_id: {subject_id}", *([f"currency: {found[0]}"] if found else [])]


def panel(subject_id: int) -> dict[str, Any]:
    """Return the context of `billing/customer_panel.html`: money, messages in flight, open invoices, payments."""
    return customer_panel.context(subject_id)


def review(subject_id: int, *, calls: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return the context of `billing/review_panel.html`: the money that these calls are about, and what they would make of it."""
    return review_panel.context(subject_id, calls=calls, changes=changes)


def _subject(customer: Customer) -> Subject:
    return Subject(id=customer.id, name=customer.name, detail=f"{customer.email} · {customer.currency}")
