"""What the database makes up in billing's rows and messages when the agent's tools write them; everything else is pinned.

What only settling writes (a refund's `settled_at`, the provider's ids) is not in it: in a batch it can only be an old row's.
"""

from agent.digests import Mask, Masks

INVOICE, REFUND, MEMO, PAYMENT = "billing_invoice", "billing_refund", "billing_credit_memo", "billing_payment"

MASKS: Masks = {
    "billing_customer": Mask(key="id"),
    "billing_credit_account": Mask(key="customer_id"),
    INVOICE: Mask(key="id", generated=("created_at", "paid_at")),
    PAYMENT: Mask(key="id", refers={"invoice_id": INVOICE}),
    REFUND: Mask(key="id", generated=("created_at",), refers={"payment_id": PAYMENT}),
    MEMO: Mask(key="id", generated=("created_at",), refers={"invoice_id": INVOICE}),
    "billing_credit_entry": Mask(key="id", generated=("created_at",), refers={"invoice_id": INVOICE, "credit_memo_id": MEMO}),
    "payment.charge": Mask(refers={"invoice_id": INVOICE}, aggregate=INVOICE),
    "payment.refund": Mask(refers={"refund_id": REFUND, "payment_id": PAYMENT, "invoice_id": INVOICE}, aggregate=PAYMENT),
}
