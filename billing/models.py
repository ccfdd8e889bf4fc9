"""Customers and their money, in minor units with a currency. Written by the psycopg verbs beside this file.

Composite foreign keys, row-level security and change triggers are in the migrations: Django cannot say them.
"""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

LARGEST = 10**12  # minor units: far above any real amount, far below bigint


class Customer(models.Model):
    """A customer of the company: the subject of conversations."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField()
    email = models.TextField(unique=True)
    currency = models.TextField()
    terms_days = models.IntegerField(default=14, db_default=14)
    provider_customer_id = models.TextField(null=True, unique=True)
    provider_payment_method = models.TextField(null=True)
    card_last4 = models.TextField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(name="billing_customer_currency_code", condition=Q(currency__regex=r"^[A-Z]{3}$")),
            models.UniqueConstraint(fields=["id", "currency"], name="billing_customer_currency"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class CreditAccount(models.Model):
    """A customer's credit balance; its last entry says the same (checked by a deferred trigger)."""

    customer = models.OneToOneField(
        Customer, on_delete=models.PROTECT, db_constraint=False, primary_key=True, related_name="credit"
    )
    currency = models.TextField()
    balance_minor = models.BigIntegerField(default=0, db_default=0)
    entries = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "billing_credit_account"
        constraints = [
            models.CheckConstraint(name="billing_credit_balance_not_negative", condition=Q(balance_minor__gte=0)),
            models.CheckConstraint(name="billing_credit_balance_bounded", condition=Q(balance_minor__lte=LARGEST)),
        ]

    def __str__(self) -> str:
        return f"credit of {self.customer_id}"


class Invoice(models.Model):
    """draft → charge_queued → paid | charge_failed; charge_failed → charge_queued | void; draft → paid | void."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        CHARGE_QUEUED = "charge_queued"
        PAID = "paid"
        CHARGE_FAILED = "charge_failed"
        VOID = "void"

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="invoices")
    billing_period = models.DateField()
    description = models.TextField(default="", db_default="")
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    amount_due_minor = models.BigIntegerField()
    credited_minor = models.BigIntegerField(default=0, db_default=0)  # sum of its credit memos
    status = models.TextField(choices=Status.choices, default=Status.DRAFT, db_default=Status.DRAFT)
    charge_attempt = models.IntegerField(default=0, db_default=0)  # names the charge in its dedupe key
    created_at = models.DateTimeField(db_default=Now())
    paid_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "billing_period"], condition=~Q(status="void"), name="billing_invoice_one_per_period"
            ),
            models.UniqueConstraint(fields=["customer", "id"], name="billing_invoice_of_customer"),
            models.CheckConstraint(name="billing_invoice_period_is_month", condition=Q(billing_period__day=1)),
            models.CheckConstraint(
                name="billing_invoice_amount_positive", condition=Q(amount_minor__gt=0, amount_minor__lte=LARGEST)
            ),
            models.CheckConstraint(
                name="billing_invoice_due_within_amount",
                condition=Q(amount_due_minor__gte=0, amount_due_minor__lte=F("amount_minor")),
            ),
            models.CheckConstraint(
                name="billing_invoice_credit_memo_cap", condition=Q(credited_minor__gte=0, credited_minor__lte=F("amount_minor"))
            ),
            models.CheckConstraint(
                name="billing_invoice_status_known",
                condition=Q(status__in=["draft", "charge_queued", "paid", "charge_failed", "void"]),
            ),
            models.CheckConstraint(name="billing_invoice_paid_has_time", condition=~Q(status="paid") | Q(paid_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"invoice {self.id}"


class Payment(models.Model):
    """Money that the provider took for an invoice; made when a charge settles.

    A stray one came when nothing was owed any more, such as for an invoice that was voided or paid otherwise meanwhile.
    """

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="payments")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, db_constraint=False, related_name="payments")
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    refunded_minor = models.BigIntegerField(default=0, db_default=0)  # queued and confirmed refunds
    stray = models.BooleanField(default=False, db_default=False)  # pays nothing; waits to be sent back
    provider_payment_id = models.TextField(unique=True)
    provider_invoice_id = models.TextField(null=True)  # the provider's, if it paid one there: refunds get credit notes
    paid_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["customer", "id"], name="billing_payment_of_customer"),
            models.UniqueConstraint(fields=["invoice"], condition=Q(stray=False), name="billing_payment_one_of_invoice"),
            models.CheckConstraint(name="billing_payment_amount_positive", condition=Q(amount_minor__gt=0)),
            models.CheckConstraint(
                name="billing_payment_provider_invoice_form", condition=Q(provider_invoice_id__regex=r"^in_[A-Za-z0-9_]+$")
            ),
            models.CheckConstraint(
                name="billing_payment_refund_cap", condition=Q(refunded_minor__gte=0, refunded_minor__lte=F("amount_minor"))
            ),
        ]

    def __str__(self) -> str:
        return f"payment {self.id}"


class Refund(models.Model):
    """Money on its way back to the card it came from: queued → confirmed | refused | withdrawn; confirmed → reversed.

    The provider's word may come late: refused or withdrawn → confirmed, when the money left all the same.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        CONFIRMED = "confirmed"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"
        REVERSED = "reversed"  # it was confirmed, and came back: see its reversal

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="refunds")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, db_constraint=False, related_name="refunds")
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    reason = models.TextField()
    status = models.TextField(choices=Status.choices, default=Status.QUEUED, db_default=Status.QUEUED)
    provider_refund_id = models.TextField(null=True, unique=True)
    provider_credit_note_id = models.TextField(null=True, unique=True)  # only where the payment has an invoice at the provider
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["customer", "id"], name="billing_refund_of_customer"),
            models.UniqueConstraint(fields=["payment"], condition=Q(status="queued"), name="billing_refund_one_in_flight"),
            models.CheckConstraint(name="billing_refund_amount_positive", condition=Q(amount_minor__gt=0)),
            models.CheckConstraint(
                name="billing_refund_status_known",
                condition=Q(status__in=["queued", "confirmed", "refused", "withdrawn", "reversed"]),
            ),
            models.CheckConstraint(
                name="billing_refund_credit_note_follows",
                condition=Q(provider_credit_note_id__isnull=True) | Q(status__in=["confirmed", "reversed"]),
            ),
        ]

    def __str__(self) -> str:
        return f"refund {self.id}"


class RefundReversal(models.Model):
    """A refund that had been confirmed and failed afterwards: the money came back to us. Insert-only."""

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="refund_reversals")
    refund = models.OneToOneField(Refund, on_delete=models.PROTECT, db_constraint=False, related_name="reversal")
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    reason = models.TextField()  # the provider's code, such as expired_or_canceled_card
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "billing_refund_reversal"
        constraints = [
            models.CheckConstraint(name="billing_refund_reversal_amount_positive", condition=Q(amount_minor__gt=0)),
        ]

    def __str__(self) -> str:
        return f"reversal of refund {self.refund_id}"


class CreditMemo(models.Model):
    """A document that gives credit for an invoice; the credit entry beside it raises the balance."""

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="credit_memos")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, db_constraint=False, related_name="credit_memos")
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "billing_credit_memo"
        constraints = [
            models.UniqueConstraint(fields=["customer", "id"], name="billing_credit_memo_of_customer"),
            models.CheckConstraint(name="billing_credit_memo_amount_positive", condition=Q(amount_minor__gt=0)),
        ]

    def __str__(self) -> str:
        return f"credit memo {self.id}"


class CreditEntry(models.Model):
    """One movement of a credit balance, insert-only, with the balance after it."""

    class Kind(models.TextChoices):
        OPENING = "opening"
        MEMO = "memo"
        APPLIED = "applied"  # to an invoice
        PAID_OUT = "paid_out"  # deducted, as for a refund to the card
        RETURNED = "returned"  # an invoice that had used it was voided

    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, db_constraint=False, related_name="credit_entries")
    number = models.BigIntegerField()
    currency = models.TextField()
    amount_minor = models.BigIntegerField()
    balance_after_minor = models.BigIntegerField()
    kind = models.TextField(choices=Kind.choices)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, db_constraint=False, null=True, related_name="credit_entries")
    credit_memo = models.ForeignKey(CreditMemo, on_delete=models.PROTECT, db_constraint=False, null=True, related_name="entries")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "billing_credit_entry"
        constraints = [
            models.UniqueConstraint(fields=["customer", "number"], name="billing_credit_entry_number"),
            models.CheckConstraint(name="billing_credit_entry_not_zero", condition=~Q(amount_minor=0)),
            models.CheckConstraint(name="billing_credit_entry_balance_not_negative", condition=Q(balance_after_minor__gte=0)),
            models.CheckConstraint(
                name="billing_credit_entry_kind_known",
                condition=Q(kind__in=["opening", "memo", "applied", "paid_out", "returned"]),
            ),
        ]

    def __str__(self) -> str:
        return f"credit entry {self.number} of {self.customer_id}"
