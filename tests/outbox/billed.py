"""Payments that paid an invoice at the provider too."""

from typing import Any

from psycopg.rows import dict_row

from billing import credit_notes
from tests.outbox.provider import Provider

PAYMENT = """
SELECT p.provider_payment_id, p.amount_minor, lower(p.currency) AS currency, c.provider_customer_id AS customer
FROM public.billing_payment p JOIN public.billing_customer c ON c.id = p.customer_id WHERE p.invoice_id = %s
"""


def link(owner: Any, provider: Provider, *, invoice: int) -> str:
    """Have the payment of our invoice pay one at the provider, enter that, and return what it is called there."""
    with owner.cursor(row_factory=dict_row) as cursor:
        payment = cursor.execute(PAYMENT, (invoice,)).fetchone()
    of_it = {name: payment[name] for name in ("customer", "currency")}
    made: str = provider.create("/v1/invoices", **of_it)["id"]
    provider.create("/v1/invoiceitems", invoice=made, amount=payment["amount_minor"], **of_it)
    provider.create(f"/v1/invoices/{made}/finalize")
    provider.create(f"/v1/invoices/{made}/attach_payment", payment_intent=payment["provider_payment_id"])
    with owner.transaction():
        credit_notes.link(owner, provider_payment_id=payment["provider_payment_id"], provider_invoice_id=made)
    return made
