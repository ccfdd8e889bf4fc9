"""Mistakes on demand, for demonstrations: what a careless model would send, switched on by the staff member's own message."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.offline import corrections
from sandbox.offline.history import Turn
from sandbox.offline.plans import Call

FLAWS = {
    "stray quote": "the third call's customer_id is a string with a stray quote in it",
    "wrong customer": "the last call names another customer",
    "negative amount": "the last amount is negative",
    "bad date": "the first billing period is written 30/11/2026",
    "unknown tool": "the last call names a tool that does not exist",
    "truncated": "the last call's JSON is cut off, as by a limit on the answer's length",
    "same id": "two calls have the same id",
    "loop": "the last call is about something that does not exist, and is sent again unchanged for ever",
    "stubborn": "three wrong amounts in a row",
    "slow": "every piece of the answer takes a quarter of a second",
}
NOWHERE = "2001-01-01"  # a month that nobody has an invoice for
NOBODYS = "XTS"  # the code that ISO keeps for tests
TOO_MUCH = 1_000_001  # minor units: one above what any tool takes


@dataclass(frozen=True, kw_only=True)
class Step:
    """Calls as they are sent: raw JSON for what is no JSON, and calls that share an id."""

    calls: list[Call]
    raw: dict[int, str] = field(default_factory=dict)  # the arguments' text, where it is not the arguments' JSON
    same_id: bool = False
    cut_off: bool = False


def spoil(calls: Sequence[Call], *, turn: Turn, reviewed: bool) -> Step:
    """Return the calls as a model with the turn's flaws sends them; every flaw but the loop ends by itself."""
    step = Step(calls=list(calls))
    if all(call.tool == "LookUpCustomer" for call in calls):
        return step
    if "loop" in turn.flaws:
        return replace(step, calls=_put(calls, -1, _nowhere(calls[-1])))
    if "stubborn" in turn.flaws and not reviewed and len(turn.writes) < 3:
        return replace(step, calls=_stubborn(calls, turn))
    if turn.writes or reviewed:
        return step
    for flaw in FLAWS:
        if flaw in turn.flaws and flaw in SPOILERS:
            step = SPOILERS[flaw](step)
    return step


def _put(calls: Sequence[Call], index: int, call: Call) -> list[Call]:
    changed = list(calls)
    changed[index] = call
    return changed


def _changed(step: Step, index: int, **arguments: Any) -> Step:
    call = step.calls[index]
    return replace(step, calls=_put(step.calls, index, replace(call, arguments=call.arguments | arguments)))


def _stray_quote(step: Step) -> Step:
    index = min(2, len(step.calls) - 1)
    return _changed(step, index, customer_id=f"{step.calls[index].arguments['customer_id']}'")


def _wrong_customer(step: Step) -> Step:
    return _changed(step, -1, customer_id=step.calls[-1].arguments["customer_id"] + 1)


def _negative(step: Step) -> Step:
    index = _last_with(step.calls, "amount_minor")
    return step if index is None else _changed(step, index, amount_minor=-step.calls[index].arguments["amount_minor"])


def _bad_date(step: Step) -> Step:
    index = next((number for number, call in enumerate(step.calls) if "billing_period" in call.arguments), None)
    if index is None:
        return step
    year, month, _ = step.calls[index].arguments["billing_period"].split("-")
    return _changed(step, index, billing_period=f"30/{month}/{year}")


def _unknown_tool(step: Step) -> Step:
    return replace(step, calls=_put(step.calls, -1, replace(step.calls[-1], tool="WriteOffInvoice")))


def _truncated(step: Step) -> Step:
    text = json.dumps(step.calls[-1].arguments)
    return replace(step, raw={len(step.calls) - 1: text[: len(text) * 2 // 3]}, cut_off=True)


def _same_id(step: Step) -> Step:
    calls = step.calls if len(step.calls) > 1 else step.calls * 2
    return replace(step, calls=calls, same_id=True)


def _nowhere(call: Call) -> Call:
    if call.tool != "CreateInvoice" and corrections.reference(call.arguments):
        kept = {name: value for name, value in call.arguments.items() if name != "invoice_id"}
        return replace(call, arguments=kept | {"billing_period": NOWHERE})
    return replace(
        call, arguments=call.arguments | ({"currency": NOBODYS} if "currency" in call.arguments else {"customer_id": 0})
    )


def _stubborn(calls: Sequence[Call], turn: Turn) -> list[Call]:
    """Return the calls with an amount that cannot be right: more than the error said, else not what is due, else too much."""
    left = 3 - len(turn.writes)  # this attempt included
    found = corrections.MINOR.search(corrections.failure(turn.writes[-1])) if turn.writes else None
    credit = next((index for index, call in enumerate(calls) if call.tool == "ApplyCredit"), None)
    if found and credit is not None and "balance" in corrections.failure(turn.writes[-1]):
        return _with_amount(calls, credit, int(found[1]) + (1250 if left > 1 else 1))
    charge = next((index for index, call in enumerate(calls) if call.tool == "QueueCharge"), None)
    if charge is not None:
        return _with_amount(calls, charge, calls[charge].arguments["amount_minor"] + 100 * left)
    index = _last_with(calls, "amount_minor")
    return list(calls) if index is None else _with_amount(calls, index, TOO_MUCH + left)


def _with_amount(calls: Sequence[Call], index: int, minor: int) -> list[Call]:
    return _put(calls, index, replace(calls[index], arguments=calls[index].arguments | {"amount_minor": minor}))


def _last_with(calls: Sequence[Call], name: str) -> int | None:
    return next((index for index in reversed(range(len(calls))) if name in calls[index].arguments), None)


SPOILERS: dict[str, Callable[[Step], Step]] = {
    "stray quote": _stray_quote,
    "wrong customer": _wrong_customer,
    "negative amount": _negative,
    "bad date": _bad_date,
    "unknown tool": _unknown_tool,
    "truncated": _truncated,
    "same id": _same_id,
}
