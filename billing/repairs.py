"""Books that do not stand as the message of their charge or refund does, and how they follow it again.

They are put where the verbs of `settlements` can apply the message's outcome once more. Nothing here moves money, and nothing
takes a payment or a reversal out of the books: where they cannot follow, a sentence says why. The verbs run as the outbox login
inside a transaction whose subject is the customer; what they decide is decided by pure functions, which a scan asks, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection

from billing import money, rows
from ledger.refusals import Refusal
from outbox.transitions import TAKEN_BACK

# stand: as the message does · settle: its outcome can be applied as they are · reopen: first they go back to where they were
# while it was under way.
Way = Literal["stand", "settle", "reopen"]

# The message's own payment says what became of its money; `payment` is what pays the invoice, whichever charge it came from.
CHARGE = """
SELECT i.id AS invoice, i.currency, i.status, i.amount_due_minor AS due_minor, m.state, m.provider_id IS NOT NULL AS named,
    m.dedupe_key = 'charge:invoice:' || i.id || ':' || i.charge_attempt AS last,
    (m.payload ->> 'amount_minor')::bigint AS charged_minor, own.stray, paying.id AS payment
FROM public.outbox_message m JOIN public.billing_invoice i ON i.id = (m.payload ->> 'invoice_id')::bigint
LEFT JOIN public.billing_payment own ON own.provider_payment_id = m.provider_id
LEFT JOIN public.billing_payment paying ON paying.invoice_id = i.id AND paying.customer_id = i.customer_id AND NOT paying.stray
WHERE m.id = %(message)s FOR NO KEY UPDATE OF i
"""
REOPEN_CHARGE = "UPDATE public.billing_invoice SET status = 'charge_queued', paid_at = NULL WHERE id = %s"
OWED = """
SELECT EXISTS (
    SELECT FROM public.outbox_message m JOIN public.billing_invoice i ON i.id = (m.payload ->> 'invoice_id')::bigint
    WHERE m.id = %s AND CASE i.status
        WHEN 'charge_queued' THEN m.dedupe_key = 'charge:invoice:' || i.id || ':' || i.charge_attempt
        ELSE i.status IN ('draft', 'charge_failed') AND i.amount_due_minor = (m.payload ->> 'amount_minor')::bigint END)
"""
PAYMENT = "SELECT 1 FROM public.billing_payment WHERE id = %s FOR NO KEY UPDATE"
REFUND = """
SELECT r.id AS refund, r.currency, r.status, r.payment_id AS payment, r.amount_minor, m.state, m.provider_status,
    p.amount_minor AS paid_minor, others.amount_minor AS others_minor, others.queued AS others_queued
FROM public.outbox_message m JOIN public.billing_refund r ON r.id = (m.payload ->> 'refund_id')::bigint
JOIN public.billing_payment p ON p.id = r.payment_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(o.amount_minor), 0)::bigint AS amount_minor, coalesce(bool_or(o.status = 'queued'), false) AS queued
    FROM public.billing_refund o WHERE o.payment_id = r.payment_id AND o.id <> r.id AND o.status IN ('queued', 'confirmed')
) others
WHERE m.id = %(message)s FOR NO KEY UPDATE OF r
"""
REOPEN_REFUND = "UPDATE public.billing_refund SET status = 'queued', provider_refund_id = NULL, settled_at = NULL WHERE id = %s"
# What a payment says was refunded is what its refunds add up to, whoever changed one of them.
RECKON = """
UPDATE public.billing_payment p SET refunded_minor = total.minor
FROM (SELECT coalesce(sum(amount_minor), 0)::bigint AS minor FROM public.billing_refund
      WHERE payment_id = %(payment)s AND status IN ('queued', 'confirmed')) total
WHERE p.id = %(payment)s AND p.refunded_minor <> total.minor
"""
REFUND_STATUS = {"succeeded": "confirmed", "rejected": "refused", "cancelled": "withdrawn"}
INVOICE_STATUS = {"rejected": "charge_failed", "cancelled": "draft"}


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An invoice beside the message of one of its charges. Amounts in minor units."""

    invoice: int
    currency: str
    status: str
    due_minor: int
    state: str  # the message's
    named: bool  # the message knows its object at the provider
    last: bool  # no charge of the invoice came after this one
    charged_minor: int
    stray: bool | None  # this charge's own payment pays nothing; None: it is not in the books
    payment: int | None  # what pays the invoice

    def way(self) -> Way:
        """Return how the invoice can follow the message; raise Refusal."""
        if self.state == "succeeded":
            return self._way_of_success()
        if not self.last:
            return "stand"  # a later charge speaks for it
        if self.payment is not None:
            raise Refusal(
                f"Invoice {self.invoice} has payment {self.payment}, which stays: a charge that is {self.state} has none."
            )
        if self.status == "void":
            return self._way_of_void()
        return self._way_of_unpaid(should=INVOICE_STATUS.get(self.state, "charge_queued"))

    def pays(self) -> bool:
        """Return whether the money of a charge that succeeded pays the invoice once that follows; else nobody owes it."""
        owed = self.status in ("draft", "charge_failed") and self.due_minor == self.charged_minor
        return owed or (self.status == "charge_queued" and self.last) or self.way() == "reopen"

    def _way_of_unpaid(self, *, should: str) -> Way:
        without_charge = self.status == "paid" and self.due_minor == 0 and should != "charge_queued"
        if self.status == should or without_charge:
            return "stand"
        if should == "charge_queued":
            self._check_due()
        return "settle" if self.status == "charge_queued" else "reopen"

    def _way_of_void(self) -> Way:
        if self.state in INVOICE_STATUS:
            return "stand"
        raise Refusal(f"Invoice {self.invoice} is void, so no charge of it is under way in the books.")

    def _way_of_success(self) -> Way:
        if self.stray:
            return "stand"
        if self.stray is None and not self.named:
            raise Refusal(f"The charge of invoice {self.invoice} does not say what the provider calls it.")
        if self.status == "paid":
            return self._way_of_paid()
        if self.stray is None and self.payment is not None:
            raise Refusal(f"Invoice {self.invoice} has payment {self.payment}, which came from another charge.")
        if self.status == "charge_queued" and self.last:
            self._check_due()
        return "settle"  # paid if it is owed, else a stray payment

    def _way_of_paid(self) -> Way:
        free = self.stray is None and (self.payment is not None or self.due_minor == 0 or not self.last)
        if free:  # it is paid without this money, which nobody owes
            return "settle"
        self._check_due()
        return "stand" if self.stray is not None else "reopen"

    def _check_due(self) -> None:
        if self.due_minor != self.charged_minor:
            due, charged = (money.format(minor, self.currency) for minor in (self.due_minor, self.charged_minor))
            raise Refusal(f"Invoice {self.invoice} has {due} due by now, and its charge is of {charged}.")


@dataclass(frozen=True, kw_only=True)
class Refund:
    """A refund beside its message. Amounts in minor units."""

    refund: int
    currency: str
    status: str
    payment: int
    amount_minor: int
    state: str  # the message's
    provider_status: str | None
    paid_minor: int  # the payment's amount
    others_minor: int  # what other refunds of the payment hold
    others_queued: bool  # one of them is under way

    @property
    def taken_back(self) -> bool:
        """Return whether the provider took its success back."""
        return self.state == "succeeded" and self.provider_status in TAKEN_BACK

    @property
    def should(self) -> str:
        """Return the status that goes with the message."""
        return "reversed" if self.taken_back else REFUND_STATUS.get(self.state, "queued")

    def way(self) -> Way:
        """Return how the refund can follow the message; raise Refusal."""
        if self.status == self.should:
            return "stand"
        if self.status == "reversed":
            raise Refusal(f"Refund {self.refund} came back, and its reversal stays in the books.")
        if self.should in ("queued", "confirmed", "reversed") and self.others_minor + self.amount_minor > self.paid_minor:
            raise Refusal(f"Payment {self.payment} has less left than refund {self.refund} is of.")
        if self.should in ("confirmed", "reversed") or self.status == "queued":
            return "settle"
        if self.others_queued:
            raise Refusal(f"Another refund of payment {self.payment} is under way; this one can follow when that is done.")
        return "reopen"


def charge_is_owed(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Return whether a charge that succeeds now pays its invoice; else its money is owed to nobody."""
    (owed,) = conn.execute(OWED, (message["id"],)).fetchone() or (False,)
    return bool(owed)


def reopen_charge(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Put an invoice where its charge's outcome can be applied again, and return whether it stood otherwise; raise Refusal."""
    found = rows.one(conn, CHARGE, {"message": message["id"]})
    if found is None:
        raise Refusal("The books do not know its invoice.")
    way = Charge(**found).way()
    if way == "reopen":
        conn.execute(REOPEN_CHARGE, (found["invoice"],))
    return way != "stand"


def reopen_refund(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Put a refund where its outcome can be applied again, and return whether it stood otherwise; raise Refusal."""
    conn.execute(PAYMENT, (message["payload"]["payment_id"],))  # before the refund, and before its others are added up
    found = rows.one(conn, REFUND, {"message": message["id"]})
    if found is None:
        raise Refusal("The books do not know its refund.")
    way = Refund(**found).way()
    if way == "reopen":
        conn.execute(REOPEN_REFUND, (found["refund"],))
    if way != "stand":
        conn.execute(RECKON, {"payment": found["payment"]})
    return way != "stand"
