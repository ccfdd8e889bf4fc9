"""Money that was taken and is owed to nobody, as long as it was not sent back."""

from collections.abc import Iterator

from billing import money
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Fact, Looking, Row

# Whoever is told of it by the settling message asks about that message: it is the same question.
STRAYS = """
SELECT p.id, p.customer_id, p.invoice_id, p.currency, p.amount_minor, p.amount_minor - p.refunded_minor AS left_minor,
    i.status, m.id AS message, m.thread, m.ai_message_id, e.on_behalf_of
FROM public.billing_payment p LEFT JOIN public.billing_invoice i ON i.id = p.invoice_id
LEFT JOIN public.outbox_message m ON m.provider_id = p.provider_payment_id AND m.state = 'succeeded'
LEFT JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
WHERE (%(after)s::bigint IS NULL OR p.id > %(after)s) AND p.id <= %(upto)s AND p.stray AND p.refunded_minor < p.amount_minor
ORDER BY p.id
"""


def strays(looking: Looking) -> Iterator[Disagreement]:
    """Yield the payments that pay nothing, and of which something was not sent back."""
    for row in looking.chunks(STRAYS, table="billing_payment"):
        yield _stray(row)


def _stray(row: Row) -> Disagreement:
    taken, left = (money.format(row[name], row["currency"]) for name in ("amount_minor", "left_minor"))
    status = str(row["status"]).replace("_", " ")
    return Disagreement(
        object=f"message:{row['message']}" if row["message"] else f"payment:{row['id']}",
        about=f"Payment {taken}",
        sentence=f"{left} was taken for invoice {row['invoice_id']}, which it does not pay: it is owed to nobody.",
        facts=(
            Fact(name=f"Invoice {row['invoice_id']}", ours=status, theirs=f"paid nothing of it with payment {row['id']}"),
            Fact(name="To send back", ours="nothing", theirs=left, differs=True),
        ),
        exits=("refund", "compensate") if row["message"] else ("compensate",),
        message=row["message"],
        subject=row["customer_id"],
        thread=row["thread"],
        ai_message_id=row["ai_message_id"],
        requested_by=row["on_behalf_of"],
        amount_minor=row["left_minor"],
        currency=row["currency"],
    )


CHECKS = (
    Check(
        name="billing.payments",
        holds="No money is kept that nobody owes.",
        mark=Mark(state="uncertain", icon="undo-2", word="Owed to nobody"),
        ours="The books say",
        theirs="The payment says",
        look=strays,
    ),
)
