"""Payments that paid an invoice at the provider too."""

from typing import Any

from psycopg.rows import dict_row

from billing import credit_notes
from tests.outbox.provider import Provider

PAYMENT = """
SELECT provider_payment_id, amount_minor FROM public.billing_payment WHERE invoice_id = %s AND NOT stray
"""


def link(owner: Any, provider: Provider, *, invoice: int) -> str:
    """Have the payment of our invoice pay one at the provider, enter that, and return what it is called there."""
    with owner.cursor(row_factory=dict_row) as cursor:
        payment = cursor.execute(PAYMENT, (invoice,)).fetchone()
    (intent,) = provider.call("GET", f"objects?id={payment['provider_payment_id']}")["objects"]
    of_it = {name: intent["body"][name] for name in ("customer", "currency")}
    made: str = provider.create("/v1/invoices", **of_it)["id"]
    provider.create("/v1/invoiceitems", invoice=made, amount=payment["amount_minor"], **of_it)
    provider.create(f"/v1/invoices/{made}/finalize")
    provider.create(f"/v1/invoices/{made}/attach_payment", payment_intent=payment["provider_payment_id"])
    with owner.transaction():
        credit_notes.link(owner, provider_payment_id=payment["provider_payment_id"], provider_invoice_id=made)
    return made
