"""What the offline model says about calls: what it is about to do, and what the results say was done."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from billing import money
from sandbox.offline import periods, plans
from sandbox.offline.history import Answered
from sandbox.offline.plans import Call

INTRODUCTION = "I am the offline stand-in for a language model."
LISTING = (
    "I can look up the customer, the credit balance, open invoices and payments, and say how an invoice, a charge or a refund"
    " stands; create, void and reissue invoices; issue credit memos; use, move and deduct credit; charge invoices and retry"
    " refused charges; refund payments; ask a person."
)
EXAMPLE = "For example: “Invoice this month for €480, use their €150 credit and charge the rest”."
COURTESY = "Hello. What should I do for this customer?"
THANKED = "You are welcome."
NOTHING = "All right. I did nothing."


def listing() -> str:
    """Return what the model can do."""
    return f"{INTRODUCTION} {LISTING} {EXAMPLE}"


def proposed(calls: Sequence[Call]) -> str:
    """Return one sentence about calls that are about to be made."""
    parts = [PROPOSALS[call.tool](call.arguments) for call in calls if call.tool in PROPOSALS]
    return f"I will {_joined(parts)}." if parts else ""


def applied(calls: Sequence[Answered]) -> str:
    """Return what the results of applied calls say, a sentence for each."""
    return " ".join(RESULTS[call.tool](call.arguments, call.result) for call in calls if call.tool in RESULTS)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _money(arguments: dict[str, Any], name: str = "amount_minor") -> str:
    return money.format(arguments[name], arguments["currency"])


def _invoice(arguments: dict[str, Any]) -> str:
    return plans.words({name: arguments[name] for name in ("invoice_id", "billing_period") if name in arguments})


def _of_invoice(arguments: dict[str, Any], preposition: str) -> str:
    return f" {preposition} {_invoice(arguments)}" if "invoice_id" in arguments or "billing_period" in arguments else ""


def _month(arguments: dict[str, Any]) -> str:
    return periods.words(date.fromisoformat(arguments["billing_period"]))


def _balance(result: dict[str, Any]) -> str:
    return f"the balance is now {_money(result, 'credit_balance_minor')}" if "credit_balance_minor" in result else ""


def _with(*parts: str) -> str:
    return "; ".join(part for part in parts if part) + "."


def _charge_proposed(arguments: dict[str, Any]) -> str:
    return (
        f"charge {_money(arguments)}"
        if arguments["amount_minor"]
        else f"close {_invoice(arguments)}, with nothing left to charge"
    )


PROPOSALS: dict[str, Callable[[dict[str, Any]], str]] = {
    "CreateInvoice": lambda asked: f"create an invoice of {_money(asked)} for {_month(asked)}",
    "ApplyCredit": lambda asked: (
        f"use {_money(asked)} of credit{_of_invoice(asked, 'for')}"
        if _of_invoice(asked, "for")
        else f"take {_money(asked)} off the credit balance"
    ),
    "IssueCreditMemo": lambda asked: f"issue a credit memo of {_money(asked)} on {_invoice(asked)}",
    "VoidInvoice": lambda asked: f"void {_invoice(asked)}",
    "QueueCharge": _charge_proposed,
    "QueueRefund": lambda asked: f"refund {_money(asked)} of {_invoice(asked)}",
    "AskHuman": lambda asked: "ask a person",
}


def _created(asked: dict[str, Any], result: dict[str, Any]) -> str:
    return f"Created invoice {result.get('invoice_id', '')} of {_money(asked)} for {_month(asked)}."


def _used(asked: dict[str, Any], result: dict[str, Any]) -> str:
    if not _of_invoice(asked, "for"):
        return _with(f"Took {_money(asked)} off the credit", _balance(result))
    due = f"{_money(result, 'amount_due_minor')} is still due" if "amount_due_minor" in result else ""
    return _with(f"Used {_money(asked)} of credit", due, _balance(result))


def _credited(asked: dict[str, Any], result: dict[str, Any]) -> str:
    number = f" {result['credit_memo_id']}" if "credit_memo_id" in result else ""
    return _with(f"Issued credit memo{number} of {_money(asked)} on {_invoice(asked | _id(result))}", _balance(result))


def _voided(asked: dict[str, Any], result: dict[str, Any]) -> str:
    returned = result.get("returned_credit_minor")
    back = f"{_money(result, 'returned_credit_minor')} of credit is back on the balance" if returned else ""
    return _with(f"Voided {_invoice(asked | _id(result))}", back)


def _charged(asked: dict[str, Any], result: dict[str, Any]) -> str:
    if not asked["amount_minor"]:
        return f"{_invoice(asked | _id(result)).capitalize()} is paid: nothing was due."
    return f"The charge of {_money(asked)} is queued; {_card(result)} is charged in a moment."


def _refunded(asked: dict[str, Any], result: dict[str, Any]) -> str:
    return f"The refund of {_money(asked)} is queued; it goes to {_card(result)} in a moment."


def _id(result: dict[str, Any]) -> dict[str, Any]:
    return {"invoice_id": result["invoice_id"]} if "invoice_id" in result else {}


def _card(result: dict[str, Any]) -> str:
    return f"the card ending in {result['card_last4']}" if result.get("card_last4") else "the card"


RESULTS: dict[str, Callable[[dict[str, Any], dict[str, Any]], str]] = {
    "CreateInvoice": _created,
    "ApplyCredit": _used,
    "IssueCreditMemo": _credited,
    "VoidInvoice": _voided,
    "QueueCharge": _charged,
    "QueueRefund": _refunded,
    "AskHuman": lambda asked, result: "I asked a person. The answer comes here.",
}
