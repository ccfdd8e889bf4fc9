"""Which messages of the outbox the books refer to: those of an invoice, and so of its payments and refunds."""

MESSAGES = """
SELECT m.id FROM public.outbox_message m JOIN public.billing_invoice i ON i.id = (m.payload ->> 'invoice_id')::bigint
WHERE m.id = ANY(%(ids)s) AND m.topic LIKE 'payment.%%'
"""
