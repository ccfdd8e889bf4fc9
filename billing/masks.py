"""What is made up anew each time in billing's rows and messages when the agent's tools write them; everything else is pinned.

What only settling writes (payments, a refund's end, the provider's ids) is not in it: in a batch it can only be an old row's.
"""

from agent.digests import Mask, Masks

INVOICE, MEMO, REFUND = "billing_invoice", "billing_credit_memo", "billing_refund"

MASKS: Masks = {
    "billing_customer": Mask(key="id"),
    "billing_credit_account": Mask(key="customer_id"),
    "billing_payment": Mask(key="id"),
    INVOICE: Mask(key="id", generated=("created_at", "paid_at")),
    MEMO: Mask(key="id", generated=("created_at",), refers={"invoice_id": INVOICE}),
    REFUND: Mask(key="id", generated=("created_at",)),
    "billing_refund_reversal": Mask(key="id"),
    "billing_credit_entry": Mask(key="id", generated=("created_at",), refers={"invoice_id": INVOICE, "credit_memo_id": MEMO}),
    "payment.charge": Mask(refers={"invoice_id": INVOICE}, aggregate=INVOICE),
    "payment.refund": Mask(refers={"refund_id": REFUND}),
    "payment.credit_note": Mask(),  # no batch queues one: it follows from a refund's success
}
