"""Answers to questions, from what a look-up told and what was done in this conversation."""

from collections.abc import Callable, Sequence
from typing import Any

from billing import money
from sandbox.offline import periods, plans, wording
from sandbox.offline.acts import Act
from sandbox.offline.facts import OPEN, Facts, Invoice
from sandbox.offline.history import Turn

STATES = {
    "draft": "is a draft and not charged yet",
    "charge_queued": "has a charge under way",
    "charge_failed": "was refused by the provider at its last charge",
    "paid": "is paid",
    "void": "is void",
}


def answer(act: Act, *, facts: Facts, last: plans.Reference | None) -> str:
    """Return the answer to one question."""
    return READERS[act.name](act, facts, last)


def last_actions(turns: Sequence[Turn]) -> str:
    """Return what was last applied in this conversation."""
    for turn in reversed(turns):
        for step in reversed(turn.writes):
            if not step.failed and (told := wording.applied(step.calls)):
                return f"The last step that was applied here: {told}"
    return "Nothing was changed in this conversation yet."


def _format(facts: Facts, minor: int) -> str:
    return money.format(minor, facts.currency)


def _look_up(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    return f"{facts.name} is billed in {facts.currency}. {_balance(act, facts, last)} {_open(act, facts, last)} {_card(facts)}"


def _card(facts: Facts) -> str:
    return f"The card on file ends in {facts.card}." if facts.card else "There is no card on file."


def _balance(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    return f"The credit balance is {_format(facts, facts.balance)}."


def _open(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    found = facts.in_state(*OPEN)
    if not found:
        return "No invoice is open."
    return f"Open: {'; '.join(_line(facts, item) for item in found)}."


def _line(facts: Facts, item: Invoice) -> str:
    return f"invoice {item.id} for {periods.words(item.period)}, {_format(facts, item.due)} due, {STATES[item.status]}"


def _payments(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    found = [item for item in facts.payments if not act.months or item.period in act.months]
    paid = [item for item in facts.in_state("paid") if not act.months or item.period in act.months]
    if not paid and not found:
        return "I see no payment" + (f" for {periods.words(act.months[0])}." if act.months else ".")
    lines = [
        f"{_format(facts, item.amount)} for {periods.words(item.period)} (invoice {item.invoice_id}),"
        f" of which {_format(facts, item.refundable)} can still be refunded"
        for item in found
    ]
    listed = {item.invoice_id for item in found}
    lines += [f"invoice {item.id} for {periods.words(item.period)} is paid" for item in paid if item.id not in listed]
    return f"Payments: {'; '.join(lines)}."


def _references(act: Act, last: plans.Reference | None) -> list[plans.Reference]:
    return plans.named(act) or ([last] if act.pronoun and last else [])


def _invoice(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    references = _references(act, last)
    if not references:
        return _open(act, facts, last)
    return " ".join(_one_invoice(facts, reference) for reference in references)


def _one_invoice(facts: Facts, reference: plans.Reference) -> str:
    found = facts.invoice(reference)
    if found is None:
        return f"I cannot find {plans.words(reference)}."
    amounts = f"of {_format(facts, found.amount)}, {_format(facts, found.due)} due"
    return f"Invoice {found.id} for {periods.words(found.period)}, {amounts}, {STATES[found.status]}."


def _charge(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    references = _references(act, last)
    found = [item for reference in references if (item := facts.invoice(reference))] if references else list(facts.invoices)
    if references and not found:
        return f"I cannot find {plans.words(references[0])}."
    told = [item for item in found if references or item.status in ("charge_queued", "charge_failed")]
    if not told:
        return "No charge is under way, and none was refused."
    return " ".join(f"Invoice {item.id} for {periods.words(item.period)} {STATES[item.status]}." for item in told)


def _refund(act: Act, facts: Facts, last: plans.Reference | None) -> str:
    references = _references(act, last)
    found = [item for reference in references if (item := facts.payment(reference))] if references else list(facts.payments)
    told = [item for item in found if item.under_way or item.refunded]
    if not told:
        return "I see no refund under way" + (f" for {plans.words(references[0])}." if references else ".")
    return " ".join(
        f"Of {_format(facts, item.amount)} paid for {periods.words(item.period)}, {_format(facts, item.refunded)} is refunded"
        + (" or on its way: a refund waits for the provider." if item.under_way else "; no refund is under way.")
        for item in told
    )


READERS: dict[str, Callable[[Act, Facts, Any], str]] = {
    "look_up": _look_up,
    "balance": _balance,
    "open_invoices": _open,
    "payments": _payments,
    "invoice_status": _invoice,
    "charge_status": _charge,
    "refund_status": _refund,
}
