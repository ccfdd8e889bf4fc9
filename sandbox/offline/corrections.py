"""A step that failed, corrected from what its error says; whatever cannot be corrected is left to a look-up or to a person."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.offline import wording
from sandbox.offline.facts import CHARGEABLE, Facts
from sandbox.offline.history import Answered, Round
from sandbox.offline.plans import Call, Impossible, Plan
from sandbox.offline.tokens import Setting

MINOR = re.compile(r"\((\d+) minor units\)")
# Errors that no other arguments and no look-up can mend.
FINAL = re.compile(
    r"paused|under way|queued already|(?-i:billed in [A-Z]{3}\b|is in [A-Z]{3}\b)|no card|do not try it again", re.IGNORECASE
)
CUSTOMER = re.compile(r"customer_id|\bcustomer \S+ does not exist|about customer \d+", re.IGNORECASE)
SIGN = re.compile(r"amount_minor.*(?:greater|positive|negative)", re.IGNORECASE)
BUSY = re.compile(r"\bbusy\b|took too long|try the same", re.IGNORECASE)
SAME_ID = re.compile(r"call's id", re.IGNORECASE)
SHAPE = re.compile(
    r"invalid argument|JSON|no tool of this name|not a valid tool|cut off|YYYY-MM-DD|first day of|exactly one of"
    r"|validation error|error invoking tool",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a correction may look at."""

    setting: Setting
    step: Round
    intended: Sequence[Call]  # what the request comes to, as far as is known
    stated: Collection[int]  # minor units that a person wrote


def corrected(context: Context) -> list[Call] | None:
    """Return the complete step with its failed calls corrected, or None when the errors do not say how.

    Raises Impossible when they say that it cannot be done as asked.
    """
    calls = [Call(tool=call.tool, arguments=dict(call.arguments)) for call in context.step.calls]
    for index, call in enumerate(context.step.calls):
        if not call.error or call.undone:
            continue
        repaired = _repaired(context, calls, index, reason(call))
        if repaired is None:
            return None
        calls = repaired
    return calls


def reason(call: Answered) -> str:
    """Return why a call failed: the sentence alone."""
    text = call.text.removeprefix("FAILED:").strip()
    return text.partition("with error:")[2].partition("Please fix")[0].strip() or text


def told(sentence: str) -> str:
    """Return an error's sentence as staff read it."""
    bare = MINOR.sub("", sentence).replace("  ", " ").replace(" ,", ",").strip()
    return bare if not bare or bare.endswith((".", "!", "?")) else f"{bare}."


def failure(step: Round) -> str:
    """Return the first reason why a step failed."""
    return next((reason(call) for call in step.calls if call.error and not call.undone), "")


def changed(before: Round, after: Sequence[Call]) -> str:
    """Return what is different in the corrected step, as the start of a sentence."""
    sent = [(call.tool, call.arguments.get("amount_minor")) for call in before.calls]
    new = [call for call in after if (call.tool, call.arguments.get("amount_minor")) not in sent]
    return (
        wording.proposed(new) or f"I will send {'the call' if len(after) == 1 else f'all {len(after)} calls'} again, corrected."
    )


def without_existing(context: Context, facts: Facts) -> list[Call] | None:
    """Return the step without a CreateInvoice whose invoice is there already, if that invoice is as asked."""
    created = [call for call in context.step.calls if call.tool == "CreateInvoice"]
    rest = [Call(tool=call.tool, arguments=dict(call.arguments)) for call in context.step.calls if call.tool != "CreateInvoice"]
    for call in created:
        found = facts.invoice(call.arguments)
        if found is None or found.amount != call.arguments.get("amount_minor") or found.status not in CHARGEABLE:
            return None
    if not created or not rest:
        return None
    return _recharged(context, rest, facts)


def _recharged(context: Context, calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Give every charge the amount that will be due when it runs."""
    plan = Plan(setting=context.setting, facts=facts, acts=())
    result = []
    for call in calls:
        invoice = reference(call.arguments)
        if call.tool == "ApplyCredit" and invoice:
            plan.use_credit(invoice, call.arguments["amount_minor"])
        if call.tool == "QueueCharge":
            call = _with(call, amount_minor=plan.due_of(invoice))
        result.append(call)
    return result


def _repaired(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    for pattern, repair in REPAIRS:
        if pattern.search(sentence):
            return repair(context, calls, index, sentence)
    return None


def _customer(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    if not calls[index].arguments:
        return _intended(context, calls, index, sentence)
    return [_with(call, customer_id=context.setting.customer_id) for call in calls]


def _sign(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    sent = calls[index].arguments.get("amount_minor")
    if not isinstance(sent, int) or sent == 0:
        return None
    return _put(calls, index, _with(calls[index], amount_minor=abs(sent)))


def _same(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    return calls


def _intended(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    """Make the step again from the request; raises Impossible when that is what was sent."""
    sent = [(call.tool, call.arguments) for call in context.step.calls]
    if sent == [(call.tool, call.arguments) for call in context.intended]:
        raise Impossible(told(sentence))
    return list(context.intended) or None


def _final(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    raise Impossible(told(sentence))


def _amount(context: Context, calls: list[Call], index: int, sentence: str) -> list[Call] | None:
    """Use the amount that the error names, and let the charge of the same invoice follow."""
    call, found = calls[index], MINOR.search(sentence)
    sent = call.arguments.get("amount_minor")
    if found is None or not isinstance(sent, int):
        return None
    left = int(found[1]) - _taken_before(calls, index, of_balance="balance" in sentence)
    if call.tool == "QueueCharge":
        left = int(found[1])
        if left > sent and sent in context.stated:
            raise Impossible(told(sentence))
    elif left >= sent or _is_half_of_a_refund(calls, index):
        raise Impossible(told(sentence))
    if left > 0 or call.tool == "QueueCharge":
        return follow(_put(calls, index, _with(call, amount_minor=left)), index, by=sent - left)
    if call.tool != "ApplyCredit" or len(calls) == 1:
        raise Impossible(told(sentence))
    return without(calls, index)


def _taken_before(calls: Sequence[Call], index: int, *, of_balance: bool) -> int:
    """Return how much of the amount in an error the calls before use up: the error speaks of the books without this step."""
    call, taken = calls[index], 0
    for earlier in calls[:index]:
        minor = earlier.arguments.get("amount_minor", 0)
        if of_balance:
            taken += {"ApplyCredit": minor, "IssueCreditMemo": -minor}.get(earlier.tool, 0)
        elif earlier.tool == call.tool and reference(earlier.arguments) == reference(call.arguments):
            taken += minor
    return taken


def _is_half_of_a_refund(calls: Sequence[Call], index: int) -> bool:
    """Say whether the same amount also goes back to the card: less off the balance would give more than was meant."""
    call = calls[index]
    return (
        call.tool == "ApplyCredit"
        and not reference(call.arguments)
        and any(
            other.tool == "QueueRefund" and other.arguments["amount_minor"] == call.arguments["amount_minor"] for other in calls
        )
    )


def follow(calls: Sequence[Call], index: int, *, by: int) -> list[Call]:
    """Let the charges after a call that pays less of the same invoice follow: `by` minor units more, or what is left of it."""
    about, call = reference(calls[index].arguments), calls[index]
    if call.tool != "ApplyCredit" or not about:
        return list(calls)
    left = _left_of_created(calls, about)
    return [
        _with(later, amount_minor=later.arguments["amount_minor"] + by if left is None else left)
        if position > index and later.tool == "QueueCharge" and reference(later.arguments) == about
        else later
        for position, later in enumerate(calls)
    ]


def without(calls: Sequence[Call], index: int) -> list[Call]:
    """Return the calls without one that uses credit, the charge of the same invoice raised accordingly."""
    nothing = _put(calls, index, _with(calls[index], amount_minor=0))
    rest = follow(nothing, index, by=calls[index].arguments["amount_minor"])
    return [*rest[:index], *rest[index + 1 :]]


def _left_of_created(calls: Sequence[Call], about: dict[str, Any]) -> int | None:
    """Return what the credit of this step leaves due of an invoice that the same step creates."""
    own = [call for call in calls if reference(call.arguments) == about]
    created = [call.arguments["amount_minor"] for call in own if call.tool == "CreateInvoice"]
    used = [call.arguments["amount_minor"] for call in own if call.tool == "ApplyCredit"]
    return max(created[0] - sum(used), 0) if created else None


def reference(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what of a call's arguments names an invoice."""
    return {name: arguments[name] for name in ("invoice_id", "billing_period") if name in arguments}


def _with(call: Call, **arguments: Any) -> Call:
    return replace(call, arguments=call.arguments | arguments)


def _put(calls: Sequence[Call], index: int, call: Call) -> list[Call]:
    return [*calls[:index], call, *calls[index + 1 :]]


Repair = Callable[[Context, list[Call], int, str], list[Call] | None]
REPAIRS: tuple[tuple[re.Pattern[str], Repair], ...] = (
    (FINAL, _final),
    (CUSTOMER, _customer),
    (SIGN, _sign),
    (MINOR, _amount),
    (BUSY, _same),
    (SAME_ID, _same),
    (SHAPE, _intended),
)
