"""What a look-up told about the customer, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

OPEN = ("draft", "charge_queued", "charge_failed")
CHARGEABLE = ("draft", "charge_failed")


@dataclass(frozen=True, kw_only=True)
class Invoice:
    """An invoice; amounts in minor units."""

    id: int
    period: date
    status: str
    amount: int
    due: int
    credited: int = 0


@dataclass(frozen=True, kw_only=True)
class Payment:
    """A payment of which something can still be refunded; amounts in minor units."""

    invoice_id: int
    period: date
    amount: int
    refunded: int
    refundable: int
    under_way: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The customer as the look-up saw it."""

    name: str
    currency: str
    balance: int
    card: str
    invoices: tuple[Invoice, ...] = ()
    payments: tuple[Payment, ...] = ()

    def invoice(self, reference: Mapping[str, Any]) -> Invoice | None:
        """Return the invoice that call arguments name; by its month, never a void one."""
        for found in self.invoices:
            if found.id == reference.get("invoice_id"):
                return found
            if found.period.isoformat() == reference.get("billing_period") and found.status != "void":
                return found
        return None

    def payment(self, reference: Mapping[str, Any]) -> Payment | None:
        """Return the refundable payment of the invoice that call arguments name."""
        return next(
            (
                found
                for found in self.payments
                if found.invoice_id == reference.get("invoice_id") or found.period.isoformat() == reference.get("billing_period")
            ),
            None,
        )

    def in_state(self, *states: str) -> list[Invoice]:
        """Return the invoices in any of these states, the oldest month first."""
        return sorted((found for found in self.invoices if found.status in states), key=lambda found: found.period)


def read(result: Mapping[str, Any]) -> Facts:
    """Return the facts of a LookUpCustomer result."""
    rows = {row["invoice_id"]: row for name in ("last_invoices", "open_invoices") for row in result.get(name, ())}
    credited = {row["invoice_id"]: row.get("credited_minor", 0) for row in result.get("last_invoices", ())}
    return Facts(
        name=result.get("name", ""),
        currency=result.get("currency", ""),
        balance=result.get("credit_balance_minor", 0),
        card=result.get("card_last4") or "",
        invoices=tuple(_invoice(row, credited=credited.get(number, 0)) for number, row in rows.items()),
        payments=tuple(_payment(row) for row in result.get("refundable_payments", ())),
    )


def _invoice(row: Mapping[str, Any], *, credited: int) -> Invoice:
    return Invoice(
        id=row["invoice_id"],
        period=date.fromisoformat(row["billing_period"]),
        status=row["status"],
        amount=row["amount_minor"],
        due=row["amount_due_minor"],
        credited=credited,
    )


def _payment(row: Mapping[str, Any]) -> Payment:
    return Payment(
        invoice_id=row["invoice_id"],
        period=date.fromisoformat(row["billing_period"]),
        amount=row["amount_minor"],
        refunded=row["refunded_minor"],
        refundable=row["refundable_minor"],
        under_way=bool(row.get("refund_under_way")),
    )
