"""What admins have set, with who set it and why, and what waits for a second admin: read for pages. Rows are never changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agent import numbers
from agent.models import Policy, PolicyRequest
from agent.numbers import RULES, Rule
from agent.tools import registry
from ledger import people

MOST = 50  # lines of a history


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Writes are off: all of them, or one tool's."""

    by: str
    at: datetime
    reason: str
    tool: str = ""


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number that counts now."""

    rule: Rule
    tool: str
    about: str  # what the tool does
    currency: str  # empty: every currency without a number of its own
    value: int | None
    default: int | None
    row: Policy | None  # what set it; None: the default in code
    by: str
    confirmed_by: str
    samples: str = ""  # the same in the currencies of this installation, for a number of every currency

    @property
    def words(self) -> str:
        """Return the number as people read it."""
        return self.rule.words(self.value, self.currency)

    @property
    def default_words(self) -> str:
        """Return the default as people read it."""
        return self.rule.words(self.default, self.currency)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the history."""

    row: Policy
    by: str
    confirmed_by: str

    @property
    def words(self) -> str:
        """Return what was set."""
        return numbers.words(rule=self.row.rule, tool=self.row.tool, currency=self.row.currency, value=self.row.value)


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A change that waits for a second admin."""

    row: PolicyRequest
    by: str
    now: str

    @property
    def words(self) -> str:
        """Return what would be set."""
        return numbers.words(rule=self.row.rule, tool=self.row.tool, currency=self.row.currency, value=self.row.value)


def pause() -> Pause | None:
    """Return the pause of all writes that is on now, or None."""
    return next((found for found in pauses() if not found.tool), None)


def pauses() -> list[Pause]:
    """Return what is paused now: all writes first, then single tools."""
    rows = [row for row in newest("kill_switch").values() if row.value]
    names = people.names(row.set_by for row in rows)
    return [
        Pause(tool=row.tool, by=names.get(row.set_by, "An admin"), at=row.set_at, reason=row.reason)
        for row in sorted(rows, key=lambda row: row.tool)
    ]


def newest(*rules: str) -> dict[tuple[str, str, str], Policy]:
    """Return the rows that count now, by rule, tool and currency."""
    rows = Policy.objects.filter(rule__in=rules).order_by("rule", "tool", "currency", "-id").distinct("rule", "tool", "currency")
    return {(row.rule, row.tool, row.currency): row for row in rows}


def standing(rule: Rule, *, currencies: Sequence[str] = ()) -> list[Number]:
    """Return what counts now: for each tool the number of every currency, and those of currencies with one of their own.

    A number of every currency is also said in `currencies`.
    """
    rows = newest(rule.name)
    names = people.names(user for row in rows.values() for user in (row.set_by, row.confirmed_by))
    keys = [(tool.name, "") for tool in rule.tools()] if rule.by_tool else [("", "")]
    keys += [(tool, currency) for _, tool, currency in rows if currency]
    found = [_number(rule, tool, currency, rows=rows, names=names) for tool, currency in sorted(keys, key=_order(rule))]
    return [replace(one, samples=_samples(one, keys=keys, currencies=currencies)) for one in found]


def summaries() -> list[tuple[Rule, str]]:
    """Return each rule with what counts now, short."""
    rows = newest(*RULES)
    return [(rule, _summary(rule, rows)) for rule in RULES.values()]


def history(*rules: str) -> list[Line]:
    """Return the newest changes of these rules, or of all, newest first."""
    rows = Policy.objects.order_by("-id")
    rows = list((rows.filter(rule__in=rules) if rules else rows)[:MOST])
    names = people.names(user for row in rows for user in (row.set_by, row.confirmed_by))
    return [
        Line(row=row, by=names.get(row.set_by, ""), confirmed_by=names.get(row.confirmed_by, "") if row.confirmed_by else "")
        for row in rows
    ]


def pending(*rules: str) -> list[Pending]:
    """Return what waits for a second admin, oldest first."""
    rows = PolicyRequest.objects.filter(ended_at=None).order_by("id")
    rows = list(rows.filter(rule__in=rules) if rules else rows)
    counts = newest(*{row.rule for row in rows}) if rows else {}
    names = people.names(row.asked_by for row in rows)
    return [Pending(row=row, by=names.get(row.asked_by, "An admin"), now=_now(row, counts)) for row in rows]


def _number(rule: Rule, tool: str, currency: str, *, rows: dict[tuple[str, str, str], Policy], names: dict[int, str]) -> Number:
    row, known = rows.get((rule.name, tool, currency)), registry().get(tool)
    default = rule.default_of(tool)
    return Number(
        rule=rule,
        tool=tool,
        about=known.description if known else "",
        currency=currency,
        value=row.value if row else default,
        default=default,
        row=row,
        by=names.get(row.set_by, "") if row else "",
        confirmed_by=names.get(row.confirmed_by, "") if row and row.confirmed_by else "",
    )


def _samples(number: Number, *, keys: Sequence[tuple[str, str]], currencies: Sequence[str]) -> str:
    if number.currency or number.value is None or not number.rule.by_currency:
        return ""
    return " · ".join(numbers.money(number.value, code) for code in currencies if (number.tool, code) not in keys)


def _order(rule: Rule) -> Callable[[tuple[str, str]], tuple[int, str, str]]:
    places = {tool.name: place for place, tool in enumerate(rule.tools())}
    return lambda key: (places.get(key[0], len(places)), *key)


def _now(row: PolicyRequest, counts: dict[tuple[str, str, str], Policy]) -> str:
    """Return what counts now of a number that a request wants changed."""
    if row.rule == "kill_switch":
        return "paused"
    rule = RULES[row.rule]
    found = counts.get((row.rule, row.tool, row.currency)) or counts.get((row.rule, row.tool, ""))
    return rule.words(found.value if found else rule.default_of(row.tool), row.currency)


def _summary(rule: Rule, rows: dict[tuple[str, str, str], Policy]) -> str:
    """Return how many numbers of a rule are on, and how many were set by admins."""
    keys = {(rule.name, tool.name, "") for tool in rule.tools()} if rule.by_tool else {(rule.name, "", "")}
    keys |= {key for key in rows if key[0] == rule.name}
    on = {(tool, code) for name, tool, code in keys if _on(rule, rows.get((name, tool, code)), tool)}
    if not on:
        return "Off"
    if not rule.by_tool:
        return ", ".join(sorted(_said(rule, rows[rule.name, "", code], code) for _, code in on))
    tools = [tool.name for tool in rule.tools() if any(tool.name == named for named, _ in on)]
    return f"On for {_listed(tools)}"


def _on(rule: Rule, row: Policy | None, tool: str) -> bool:
    value = row.value if row else rule.default_of(tool)
    return bool(value) if rule.less_is_looser else value is not None


def _said(rule: Rule, row: Policy, currency: str) -> str:
    return rule.words(row.value, currency) + ("" if currency else " of each currency")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
