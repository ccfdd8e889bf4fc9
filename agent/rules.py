"""The rules that any domain can use; a domain composes them with its own. Pure: calls and facts in, verdicts out."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.gate import WINDOWS, Facts, GatedCall, Limit, Verdict, each
from agent.tools import Amount, Tool

PAUSED = "An administrator has paused changes. Nothing can be changed now; tell the staff member and do not try again."
PAUSED_TOOL = (
    "An administrator has paused {tool}. It cannot be used now; do not try it again or in another way, and tell the staff member."
)
OVER = {
    "customer_day": "With it the agent would move more for this customer today than it may without a person.",
    "staff_day": "With it the agent would move more for this staff member today than it may without a person.",
    "conversation": "With it the agent would move more in this conversation than it may without a person.",
}


def _kill_switch(call: GatedCall, facts: Facts) -> Verdict | None:
    """Refuse every write while an administrator has paused them, all or one tool's."""
    if not call.tool.writes:
        return None
    for tool, sentence in (("", PAUSED), (call.tool.name, PAUSED_TOOL.format(tool=call.tool.name))):
        if (switch := facts.limit("kill_switch", tool=tool)).value:
            return _verdict(call, "kill_switch", switch, action="refuse", sentence=sentence)
    return None


def _per_call(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold a call whose amount is above its tool's limit."""
    amount = call.tool.amount(call.arguments)
    limit = facts.limit("per_call", tool=call.tool.name, currency=_currency(amount), default=call.tool.hold_above)
    sentence = "The amount is above what the agent may do without a person."
    return _above(call, "per_call", amount, limit, sentence=sentence)


def _second_reviewer(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold a call that two reviewers have to sign."""
    amount = call.tool.amount(call.arguments)
    sentence = "The amount is above what one reviewer may allow: two have to sign."
    return _above(call, "second_reviewer", amount, second_limit(call.tool, amount, facts), sentence=sentence)


def second_limit(tool: Tool, amount: Amount | None, facts: Facts) -> Limit:
    """Return the amount above which two reviewers have to sign a tool's call."""
    return facts.limit("second_reviewer", tool=tool.name, currency=_currency(amount), default=tool.second_above)


def _first_use(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold a tool's first uses in this installation."""
    limit = facts.limit("first_use", tool=call.tool.name, default=call.tool.watch_first)
    uses = facts.uses.get(call.tool.name, 0)
    if not call.tool.writes or not limit.value or uses >= limit.value:
        return None
    # what it measures falls from use to use, so that another batch's use does not hold an approved one again
    sentence = f"{call.tool.name} was used {_times(uses)} here; its first {limit.value} uses wait for a person."
    return _verdict(call, "first_use", limit, measured=limit.value - uses, sentence=sentence)


def _rejected_before(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold what a person has said no to in this conversation, with their reason."""
    effect = facts.effects.get(call.index)
    said = [item.reason for item in facts.turned_down if item.effect == effect]
    if not call.tool.writes or not said:
        return None
    sentence = f"A person has turned this down before in this conversation: “{said[-1].strip() or 'no reason was given'}”"
    return _verdict(call, "rejected_before", Limit(value=None), measured=len(said), sentence=sentence)


def same_effect(calls: Sequence[GatedCall], facts: Facts) -> Iterable[Verdict]:
    """Hold what was done before: in this conversation or batch, or for this customer within so many hours."""
    for place, call in enumerate(calls):
        limit = facts.limit("same_effect", tool=call.tool.name, default=call.tool.again_after)
        if not call.tool.writes or not limit.value:
            continue
        effect = facts.effects.get(call.index)
        past = [item for item in facts.past if item.effect == effect and (item.here or item.hours < limit.value)]
        twice = sum(facts.effects.get(other.index) == effect for other in calls[:place] if effect is not None)
        if past or twice:
            when = "in this same step" if twice else _when(min(item.hours for item in past))
            sentence = f"The same was done before, {when}. Is it really meant again?"
            yield _verdict(call, "same_effect", limit, measured=len(past) + twice, sentence=sentence)


def cumulative(calls: Sequence[GatedCall], facts: Facts) -> Iterable[Verdict]:
    """Hold a batch that would go over a cumulative limit as the sums stand now, so that people are asked before it runs.

    The sums that count are judged under lock when the batch runs.
    """
    for rule in WINDOWS:
        for currency, (total, largest) in totals(calls).items():
            limit = facts.limit(rule, currency=currency)
            measured = facts.sums.get((rule, currency), 0) + total
            if limit.value is not None and measured > limit.value:
                yield over(rule, largest, limit=limit, measured=measured, currency=currency)


def totals(calls: Sequence[GatedCall]) -> dict[str, tuple[int, GatedCall]]:
    """Return what counts of a batch by currency, in minor units, and the largest of the calls that count."""
    found: dict[str, tuple[int, int, GatedCall]] = {}
    for call in calls:
        amount = call.tool.amount(call.arguments)
        if amount and call.tool.hold_above is not None:
            total, most, largest = found.get(amount.currency, (0, -1, call))
            chosen = (amount.minor, call) if amount.minor > most else (most, largest)
            found[amount.currency] = (total + amount.minor, *chosen)
    return {currency: (total, largest) for currency, (total, _, largest) in found.items()}


def over(rule: str, call: GatedCall, *, limit: Limit, measured: int, currency: str) -> Verdict:
    """Return the verdict of a cumulative limit that is exceeded; it is held under the largest call that counts."""
    return _verdict(
        call, rule, limit, measured=measured, allowed=limit.value, currency=currency, sentence=OVER[rule]
    )  # fmt: skip


def _above(call: GatedCall, rule: str, amount: Amount | None, limit: Limit, *, sentence: str) -> Verdict | None:
    if amount is None or limit.value is None or amount.minor <= limit.value:
        return None
    return _verdict(
        call, rule, limit, measured=amount.minor, allowed=limit.value, currency=amount.currency, sentence=sentence
    )  # fmt: skip


def _verdict(call: GatedCall, rule: str, limit: Limit, **details: Any) -> Verdict:
    given: dict[str, Any] = {"action": "hold"} | details
    return Verdict(call_index=call.index, rule=rule, version=limit.version, **given)


def _currency(amount: Amount | None) -> str:
    return amount.currency if amount else ""


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _when(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(hours * 60))} min ago"
    return f"{round(hours)} h ago" if hours < 48 else f"{round(hours / 24)} days ago"


kill_switch = each(_kill_switch)
per_call = each(_per_call)
second_reviewer = each(_second_reviewer)
first_use = each(_first_use)
rejected_before = each(_rejected_before)
