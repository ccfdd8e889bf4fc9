"""What the offline model understands: the published list."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Intent:
    """One entry of the published list. `acts` are what its example consists of, in order."""

    name: str
    title: str
    example: str
    acts: tuple[str, ...]


INTENTS: tuple[Intent, ...] = (
    Intent(name="look_up_customer", title="Look up the customer", example="Look up the customer", acts=("look_up",)),
    Intent(
        name="credit_balance", title="Say the credit balance", example="How much credit do they have left?", acts=("balance",)
    ),
    Intent(name="open_invoices", title="List what is unpaid", example="Which invoices are still open?", acts=("open_invoices",)),
    Intent(name="payments", title="List the payments", example="Show me their payments", acts=("payments",)),
    Intent(
        name="invoice_status",
        title="Say how an invoice stands",
        example="What is the status of invoice 42?",
        acts=("invoice_status",),
    ),
    Intent(
        name="charge_status",
        title="Say how a charge stands",
        example="Did the charge for November go through?",
        acts=("charge_status",),
    ),
    Intent(
        name="refund_status",
        title="Say how a refund stands",
        example="Has the refund for October arrived?",
        acts=("refund_status",),
    ),
    Intent(name="last_actions", title="Say what was last done here", example="What did you do?", acts=("last_actions",)),
    Intent(name="create_invoice", title="Create an invoice", example="Create an invoice for November of €480", acts=("create",)),
    Intent(
        name="create_invoices",
        title="Create invoices for several months",
        example="Invoice October and November at €120 each",
        acts=("create",),
    ),
    Intent(
        name="invoice_and_charge",
        title="Invoice a month and charge it",
        example="Invoice November for €480 and charge it to their card",
        acts=("create", "charge"),
    ),
    Intent(
        name="invoice_credit_charge",
        title="Invoice a month, use credit, charge the rest",
        example="Invoice November for €480, use their €150 credit and charge the rest",
        acts=("create", "apply", "charge"),
    ),
    Intent(
        name="apply_credit",
        title="Use an amount of credit on an invoice",
        example="Apply €50 of their credit to invoice 42",
        acts=("apply",),
    ),
    Intent(
        name="apply_all_credit", title="Use all credit on an invoice", example="Use all their credit on November", acts=("apply",)
    ),
    Intent(
        name="credit_then_charge",
        title="Use credit on an invoice, charge the rest",
        example="Use €50 of credit on the November invoice and charge the rest",
        acts=("apply", "charge"),
    ),
    Intent(
        name="settle_with_credit",
        title="Pay an invoice from credit alone",
        example="Pay the November invoice from their credit",
        acts=("settle",),
    ),
    Intent(
        name="deduct_credit",
        title="Take credit off the balance",
        example="Deduct €30 from their credit balance",
        acts=("deduct",),
    ),
    Intent(
        name="credit_memo",
        title="Issue a credit memo",
        example="Issue a credit memo of €80 for October because of the outage",
        acts=("memo",),
    ),
    Intent(
        name="credit_memo_in_full",
        title="Credit a whole invoice",
        example="Issue a credit memo for the whole October invoice",
        acts=("memo",),
    ),
    Intent(
        name="credit_and_refund",
        title="Credit memo, deduct, refund",
        example="Issue a credit memo of €80 for October, take it off their balance and refund €80 to their card",
        acts=("memo", "deduct", "refund"),
    ),
    Intent(
        name="move_credit",
        title="Move credit from one invoice to another",
        example="Move €40 of credit from October to November",
        acts=("move",),
    ),
    Intent(name="void_invoice", title="Void an invoice", example="Void the November invoice", acts=("void",)),
    Intent(
        name="void_and_reissue",
        title="Void an invoice and issue it again",
        example="Void the November invoice and reissue it at €500",
        acts=("void", "reissue"),
    ),
    Intent(name="charge_invoice", title="Charge an invoice", example="Charge the November invoice", acts=("charge",)),
    Intent(name="retry_charge", title="Charge again after a refusal", example="Retry the refused charge", acts=("retry",)),
    Intent(name="refund_payment", title="Refund a whole payment", example="Refund the October payment in full", acts=("refund",)),
    Intent(name="refund_part", title="Refund a part of a payment", example="Refund €25 of the October payment", acts=("refund",)),
    Intent(
        name="ask_person",
        title="Ask a person",
        example="Ask a person whether the setup fee may be waived",
        acts=("ask",),
    ),
    Intent(name="help", title="Say what it can do", example="What can you do?", acts=("help",)),
    Intent(
        name="small_talk",
        title="Greetings, thanks, never mind",
        example="Hello, never mind, thanks",
        acts=("courtesy", "nothing", "courtesy"),
    ),
)
