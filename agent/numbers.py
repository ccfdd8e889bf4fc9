"""The rules whose numbers admins set: what each is called, what it counts in, what counts by default. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent import policies
from agent.gate import WINDOWS
from agent.tools import LARGEST_AMOUNT, Tool, registry
from ledger import wiring

Unit = Literal["money", "hours", "uses"]
LARGEST_SUM = 10**12  # minor units of a cumulative limit


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule with numbers. Where less is looser, a number that rises is stricter; a rule that is off is loosest."""

    name: str
    title: str
    says: str  # what it does, in one sentence
    unit: Unit
    largest: int
    default: Callable[[Tool], int | None] | None = None  # by tool; None: the rule is about no tool, and off by default
    less_is_looser: bool = False

    @property
    def by_tool(self) -> bool:
        """Return whether each tool has a number of its own."""
        return self.default is not None

    @property
    def by_currency(self) -> bool:
        """Return whether a currency may have a number of its own."""
        return self.unit == "money"

    def tools(self) -> Sequence[Tool]:
        """Return the tools that can have a number."""
        moves = [tool for tool in registry().values() if tool.writes]
        return [tool for tool in moves if tool.hold_above is not None] if self.unit == "money" else moves

    def default_of(self, tool: str) -> int | None:
        """Return what counts as long as no admin has set a number."""
        return self.default(registry()[tool]) if self.default and tool in registry() else None

    def loosens(self, *, old: int | None, new: int | None) -> bool:
        """Return whether a change needs a second admin. The database says the same."""
        if self.less_is_looser:
            return (new or 0) < (old or 0)
        return old is not None and (new is None or new > old)

    def words(self, value: int | None, currency: str = "") -> str:
        """Return a number as people read it."""
        if not value and self.less_is_looser:
            return "off"
        if value is None:
            return "no limit"
        if self.unit == "money":
            return money(value, currency)
        return f"{value:,} {self.unit if value != 1 else self.unit[:-1]}"


def money(value: int, currency: str) -> str:
    """Return an amount as people read it; without a currency only minor units can be said."""
    return str(wiring.plugged("BACKSTOP_MONEY")(value, currency)) if currency else f"{value:,} minor units of any currency"


def _hold_above(tool: Tool) -> int | None:
    return tool.hold_above


def _second_above(tool: Tool) -> int | None:
    return tool.second_above


def _again_after(tool: Tool) -> int | None:
    return tool.again_after


def _watch_first(tool: Tool) -> int | None:
    return tool.watch_first


SUMMED = "Above it the step waits for a reviewer, however it is split."
_RULES = (
    Rule(
        name="per_call",
        title="Amount of one call",
        says="A call above it waits for a reviewer.",
        unit="money",
        largest=LARGEST_AMOUNT,
        default=_hold_above,
    ),
    Rule(
        name="second_reviewer",
        title="Two reviewers above",
        says="A call above it waits until two reviewers have signed.",
        unit="money",
        largest=LARGEST_AMOUNT,
        default=_second_above,
    ),
    Rule(
        name="customer_day",
        title="Per customer and day",
        says=f"What the agent moves for one customer in one day. {SUMMED}",
        unit="money",
        largest=LARGEST_SUM,
    ),
    Rule(
        name="staff_day",
        title="Per staff member and day",
        says=f"What the agent moves for one staff member in one day. {SUMMED}",
        unit="money",
        largest=LARGEST_SUM,
    ),
    Rule(
        name="conversation",
        title="Per conversation",
        says=f"What the agent moves in one conversation, from its beginning. {SUMMED}",
        unit="money",
        largest=LARGEST_SUM,
    ),
    Rule(
        name="same_effect",
        title="The same again",
        says=(
            "What was done before in the same conversation, or for the same customer in so many hours, waits for a reviewer."
            " A reason or a description makes no difference."
        ),
        unit="hours",
        largest=policies.LONGEST,
        default=_again_after,
        less_is_looser=True,
    ),
    Rule(
        name="first_use",
        title="First uses",
        says="The first so many uses of a tool in this installation wait for a reviewer.",
        unit="uses",
        largest=policies.MOST_USES,
        default=_watch_first,
        less_is_looser=True,
    ),
)
RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
SWITCH = Rule(name="kill_switch", title="All writes", says="", unit="uses", largest=1, less_is_looser=True)
assert set(WINDOWS) <= set(RULES)
# What has no number: always on. The domain has more (see agent.policies.Knowledge).
ALWAYS = (
    (
        "Turned down before",
        "What a reviewer rejected, removed or changed waits again when the agent sends it once more in that conversation.",
    ),
)


def words(*, rule: str, tool: str, currency: str, value: int | None) -> str:
    """Return what a row of the policy sets, in words."""
    if rule == "kill_switch":
        what = tool or "All writes"
        return f"{what} paused" if value else (f"{tool} goes on" if tool else "Writes go on")
    found = RULES[rule]
    about = [found.title, tool, currency if found.by_currency else ""]
    return f"{' · '.join(part for part in about if part)}: {found.words(value, currency)}"
