"""The second phase: may these calls run now? Pure: rules over arguments and facts, no clock, no database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from agent.likeness import Effect
from agent.tools import Tool

Action = Literal["hold", "refuse"]
WINDOWS = ("customer_day", "staff_day", "conversation")  # the rules that sum amounts


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

    value: int | None  # minor units, hours or uses; None: the rule is off
    version: int = 0


@dataclass(frozen=True, kw_only=True)
class Past:
    """A call that was applied for this customer before."""

    effect: Effect
    hours: float  # ago
    here: bool  # in this conversation


@dataclass(frozen=True, kw_only=True)
class TurnedDown:
    """A call of this conversation that a person rejected, dropped or changed."""

    effect: Effect
    reason: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the rules know: read once, before the verdict."""

    numbers: Mapping[tuple[str, str, str], Limit] = field(default_factory=dict)  # (rule, tool, currency); "": every one
    effects: Mapping[int, Effect] = field(default_factory=dict)  # of the batch's own calls, by index
    past: Sequence[Past] = ()
    turned_down: Sequence[TurnedDown] = ()
    uses: Mapping[str, int] = field(default_factory=dict)  # of a tool, in this installation
    sums: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (rule, currency) → minor units so far
    domain: Mapping[str, Any] = field(default_factory=dict)  # what the domain asked for, see BACKSTOP_POLICY_FACTS

    @property
    def version(self) -> int:
        """Return the version of the whole policy: its newest row's number."""
        return max((limit.version for limit in self.numbers.values()), default=0)

    @property
    def windows(self) -> dict[tuple[str, str], Limit]:
        """Return the cumulative limits by rule and currency ("": every currency that has none of its own)."""
        return {(rule, currency): limit for (rule, _, currency), limit in self.numbers.items() if rule in WINDOWS}

    def limit(self, rule: str, *, tool: str = "", currency: str = "", default: int | None = None) -> Limit:
        """Return the number that counts: set for this currency, else for every currency, else the default in code."""
        for key in ((rule, tool, currency), (rule, tool, "")):
            if key in self.numbers:
                return self.numbers[key]
        return Limit(value=default)


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


CallRule = Callable[[GatedCall, Facts], Verdict | None]
Rule = Callable[[Sequence[GatedCall], Facts], Iterable[Verdict]]


def each(rule: CallRule) -> Rule:
    """Return a rule about one call as a rule about a batch."""

    def over_all(calls: Sequence[GatedCall], facts: Facts) -> Iterable[Verdict]:
        return [verdict for call in calls if (verdict := rule(call, facts))]

    return over_all


def judge(
    calls: Sequence[GatedCall], *, facts: Facts, rules: Sequence[Rule], waived: Sequence[Mapping[str, Any]] = ()
) -> list[Verdict]:
    """Return every verdict that stands in the way, call by call.

    A hold that a person waived counts again once it measures more. A refusal cannot be waived.
    """
    found = [verdict for rule in rules for verdict in rule(calls, facts)]
    return sorted((v for v in found if not _is_waived(v, waived)), key=lambda verdict: verdict.call_index)


def _is_waived(verdict: Verdict, waived: Sequence[Mapping[str, Any]]) -> bool:
    return verdict.action == "hold" and any(
        (item["call_index"], item["rule"]) == (verdict.call_index, verdict.rule)
        and (verdict.measured or 0) <= (item.get("measured") or 0)
        for item in waived
    )
