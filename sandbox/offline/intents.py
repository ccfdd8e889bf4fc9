"""What the offline model understands: the published list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Intent:
    """One entry of the published list. `acts` are what its example consists of, in order."""

    name: str
    title: str
    example: str
    acts: tuple[str, ...]


INTENTS: tuple[Intent, ...] = (
    Intent("look_up_customer", "Look up the customer", "Look up the customer", ("look_up",)),
    Intent("credit_balance", "Say the credit balance", "How much credit do they have left?", ("balance",)),
    Intent("open_invoices", "List what is unpaid", "Which invoices are still open?", ("open_invoices",)),
    Intent("payments", "List the payments", "Show me their payments", ("payments",)),
    Intent("invoice_status", "Say how an invoice stands", "What is the status of invoice 42?", ("invoice_status",)),
    Intent("charge_status", "Say how a charge stands", "Did the charge for November go through?", ("charge_status",)),
    Intent("refund_status", "Say how a refund stands", "Has the refund for October arrived?", ("refund_status",)),
    Intent("last_actions", "Say what was last done here", "What did you do?", ("last_actions",)),
    Intent("create_invoice", "Create an invoice", "Create an invoice for November of €480", ("create",)),
    Intent("create_invoices", "Create invoices for several months", "Invoice October and November at €120 each", ("create",)),
    Intent(
        "invoice_and_charge",
        "Invoice a month and charge it",
        "Invoice November for €480 and charge it to their card",
        ("create", "charge"),
    ),
    Intent(
        "invoice_credit_charge",
        "Invoice a month, use credit, charge the rest",
        "Invoice November for €480, use their €150 credit and charge the rest",
        ("create", "apply", "charge"),
    ),
    Intent("apply_credit", "Use an amount of credit on an invoice", "Apply €50 of their credit to invoice 42", ("apply",)),
    Intent("apply_all_credit", "Use all credit on an invoice", "Use all their credit on November", ("apply",)),
    Intent(
        "credit_then_charge",
        "Use credit on an invoice, charge the rest",
        "Use €50 of credit on the November invoice and charge the rest",
        ("apply", "charge"),
    ),
    Intent("settle_with_credit", "Pay an invoice from credit alone", "Pay the November invoice from their credit", ("settle",)),
    Intent("deduct_credit", "Take credit off the balance", "Deduct €30 from their credit balance", ("deduct",)),
    Intent("credit_memo", "Issue a credit memo", "Issue a credit memo of €80 for October because of the outage", ("memo",)),
    Intent("credit_memo_in_full", "Credit a whole invoice", "Issue a credit memo for the whole October invoice", ("memo",)),
    Intent(
        "credit_and_refund",
        "Credit memo, deduct, refund",
        "Issue a credit memo of €80 for October, take it off their balance and refund €80 to their card",
        ("memo", "deduct", "refund"),
    ),
    Intent("move_credit", "Move credit from one invoice to another", "Move €40 of credit from October to November", ("move",)),
    Intent("void_invoice", "Void an invoice", "Void the November invoice", ("void",)),
    Intent(
        "void_and_reissue",
        "Void an invoice and issue it again",
        "Void the November invoice and reissue it at €500",
        ("void", "reissue"),
    ),
    Intent("charge_invoice", "Charge an invoice", "Charge the November invoice", ("charge",)),
    Intent("retry_charge", "Charge again after a refusal", "Retry the refused charge", ("retry",)),
    Intent("refund_payment", "Refund a whole payment", "Refund the October payment in full", ("refund",)),
    Intent("refund_part", "Refund a part of a payment", "Refund €25 of the October payment", ("refund",)),
    Intent("ask_person", "Ask a person", "Ask a person whether the setup fee may be waived", ("ask",)),
    Intent("help", "Say what it can do", "What can you do?", ("help",)),
    Intent("small_talk", "Greetings, thanks, never mind", "Hello, never mind, thanks", ("courtesy", "nothing", "courtesy")),
)
