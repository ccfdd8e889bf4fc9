"""The second phase: may these calls run now? Pure: rules over arguments and facts, no clock, no database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from agent.tools import Amount, Tool

Action = Literal["hold", "refuse"]


class GatedCall(Protocol):
    """What a rule may look at of a call."""

    @property
    def index(self) -> int: ...
    @property
    def tool(self) -> Tool: ...
    @property
    def arguments(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One number of a rule and the version it was set in; version 0 is the tool's own default."""

    value: int | None  # minor units; None: the rule is off
    version: int = 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the rules know: read once, before the verdict."""

    limits: Mapping[tuple[str, str], Limit] = field(default_factory=dict)  # (tool, currency) → per-call limit
    paused: Limit | None = None  # the kill switch, when it is on
    paused_tools: Mapping[str, Limit] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Why a call does not run by itself. A call without a verdict is allowed."""

    call_index: int
    action: Action
    rule: str
    version: int
    measured: int | None = None  # minor units for amounts
    allowed: int | None = None
    currency: str = ""
    sentence: str = ""

    def row(self) -> dict[str, Any]:
        """Return the verdict as it is stored and shown."""
        return asdict(self)


Rule = Callable[[GatedCall, Facts], Verdict | None]


def kill_switch(call: GatedCall, facts: Facts) -> Verdict | None:
    """Refuse every write while an administrator has paused them, all or one tool's."""
    switch = facts.paused or facts.paused_tools.get(call.tool.name)
    if switch is None or not call.tool.writes:
        return None
    return Verdict(
        call_index=call.index,
        action="refuse",
        rule="kill_switch",
        version=switch.version,
        sentence="An administrator has paused changes. Nothing can be changed now; tell the staff member and do not try again.",
    )


def per_call(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold a call whose amount is above its tool's limit."""
    amount: Amount | None = call.tool.amount(call.arguments)
    if amount is None:
        return None
    limit = limit_of(call.tool, currency=amount.currency, facts=facts)
    if limit.value is None or amount.minor <= limit.value:
        return None
    return Verdict(
        call_index=call.index,
        action="hold",
        rule="per_call",
        version=limit.version,
        measured=amount.minor,
        allowed=limit.value,
        currency=amount.currency,
        sentence="The amount is above what the agent may do without a person.",
    )


def limit_of(tool: Tool, *, currency: str, facts: Facts) -> Limit:
    """Return the per-call limit: set for this currency, else for every currency, else the tool's default."""
    for key in ((tool.name, currency), (tool.name, "")):
        if key in facts.limits:
            return facts.limits[key]
    return Limit(value=tool.hold_above)


def judge(
    calls: Sequence[GatedCall], *, facts: Facts, rules: Sequence[Rule], waived: Sequence[Mapping[str, Any]] = ()
) -> list[Verdict]:
    """Return every verdict that stands in the way. A hold that a person waived counts again once it measures more."""
    found = [verdict for call in calls for rule in rules if (verdict := rule(call, facts))]
    return [verdict for verdict in found if not _is_waived(verdict, waived)]


def _is_waived(verdict: Verdict, waived: Sequence[Mapping[str, Any]]) -> bool:
    return verdict.action == "hold" and any(
        (item["call_index"], item["rule"]) == (verdict.call_index, verdict.rule)
        and (verdict.measured or 0) <= (item.get("measured") or 0)
        for item in waived
    )
