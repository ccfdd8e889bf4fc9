"""An escalation as the question that it puts: its mark, a sentence, an amount. Pure; used by the inbox and its page."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.text import Truncator

from ledger import sentences
from ledger.marks import Mark

if TYPE_CHECKING:  # verbs ask here too, and a process that only has their functions has no models
    from escalations.models import Escalation


KINDS: Mapping[str, Mark] = {
    "approval": Mark(state="held", icon="hand", word="Held"),
    "rollbacks": Mark(state="undone", icon="undo-2", word="Rolled back"),
    "asked": Mark(state="info", icon="messages-square", word="Asked by agent"),
    "infrastructure": Mark(state="failed", icon="database", word="Infrastructure"),
    "budget": Mark(state="held", icon="timer", word="Budget spent"),
    "unknown_outcome": Mark(state="uncertain", icon="circle-question-mark", word="Unknown outcome"),
    "rejected_payment": Mark(state="failed", icon="ban", word="Payment refused"),
    "dirty_state": Mark(state="uncertain", icon="git-compare-arrows", word="Books disagree"),
}
WANTED = {
    "approve": "approval",
    "take_over": "signature",
    "reject": "rejection",
    "answer": "answer",
    "retry": "retry",
    "close": "closing",
}
LONGEST = 120  # characters of a staff message in a list
LAST_ONE = "The last one: "  # in the reason of a series of rollbacks, before what the last one failed on
RULES = {
    "per_call": "Over the limit for one call",
    "kill_switch": "Changes are paused",
    "second_reviewer": "Two reviewers have to sign",
    "customer_day": "Over the customer's limit for a day",
    "staff_day": "Over the staff member's limit for a day",
    "conversation": "Over the limit for one conversation",
    "same_effect": "The same was done before",
    "first_use": "First use of a tool",
    "currency": "Another currency than the customer's",
    "destination": "Another destination than before",
    "rejected_before": "A reviewer said no to this before",
}
HELD_BY = {  # the same in two words, for a list
    "per_call": "call limit",
    "second_reviewer": "second review",
    "customer_day": "customer’s day",
    "staff_day": "staff’s day",
    "conversation": "conversation limit",
    "same_effect": "same effect",
    "first_use": "first use",
    "currency": "currency",
    "destination": "destination",
    "rejected_before": "rejected before",
    "kill_switch": "paused",
}


def title(escalation: "Escalation") -> str:
    """Return what is asked in a sentence of a person's."""
    payload = escalation.payload
    if escalation.kind == "asked" and payload.get("question"):
        return f"“{payload['question']}”"
    if escalation.kind == "approval" and payload.get("calls"):
        return together(payload["calls"])
    if payload.get("about"):
        return str(payload["about"])
    if payload.get("staff_message"):
        return f"“{Truncator(' '.join(payload['staff_message'].split())).chars(LONGEST)}”"
    return together(payload["calls"]) if payload.get("calls") else why(payload) or KINDS[escalation.kind].word


def why(payload: Mapping[str, Any]) -> str:
    """Return why a person is asked, without what the kind's word says already."""
    reason = str(payload.get("reason") or "")
    return reason.partition(LAST_ONE)[2] or reason


def headline(escalation: "Escalation") -> str:
    """Return the title of its page, which quotes the staff member under it."""
    if escalation.kind == "rollbacks":
        return "The agent tried and stopped. Nothing was changed."
    if escalation.kind in ("budget", "infrastructure"):
        return why(escalation.payload) or KINDS[escalation.kind].word
    return title(escalation)


def together(calls: Sequence[Mapping[str, Any]]) -> str:
    """Return the calls of a batch as one sentence."""
    first, *others = [proposed(call) for call in calls]
    return "; ".join([first, *(other[:1].lower() + other[1:] for other in others)])


def proposed(call: Mapping[str, Any]) -> str:
    """Return what one proposed call asks for, as the agent's worker said it or as we would."""
    return str(call.get("proposed") or sentences.proposed(tool=call.get("tool", ""), arguments=call.get("arguments")))


def detail(escalation: "Escalation") -> str:
    """Return why it waits, for the small line; empty when the title says it."""
    payload = escalation.payload
    held = next((verdict for verdict in payload.get("verdicts") or () if verdict.get("action") == "hold"), None)
    if held:
        return over(held)
    reason = why(payload)
    return "" if escalation.kind in ("approval", "asked") or reason == title(escalation) else reason


def over(verdict: Mapping[str, Any]) -> str:
    """Return a verdict's measured and allowed values side by side: "€282.00 over €250.00"."""
    if verdict.get("measured") is None or verdict.get("allowed") is None:
        return str(verdict.get("sentence") or rule(verdict))
    return f"{value(verdict, 'measured')} over {value(verdict, 'allowed')}"


def value(verdict: Mapping[str, Any], name: str) -> str:
    """Return one number of a verdict, an amount with its currency."""
    number, currency = verdict.get(name), verdict.get("currency")
    if number is None:
        return "—"
    return sentences.money(number, currency) if currency else str(number)


def rule(verdict: Mapping[str, Any]) -> str:
    """Return a rule's name as people read it."""
    name = str(verdict.get("rule", ""))
    return RULES.get(name, name.replace("_", " ").capitalize())


def amount(escalation: "Escalation") -> str:
    """Return what is at stake in words; empty when no money is."""
    minor, currency = at_stake(escalation.payload)
    return "" if minor is None else sentences.money(minor, currency)


def at_stake(payload: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the largest amount of what is proposed or sent, in minor units, and its currency; None and "" without any."""
    found = [sentences.amount(tool=call.get("tool", ""), arguments=call.get("arguments")) for call in payload.get("calls") or ()]
    if payload.get("amount_minor") and payload.get("currency"):
        found.append((payload["amount_minor"], payload["currency"]))
    return max((item for item in found if item), default=(None, ""))
