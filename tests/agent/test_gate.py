"""The gate's own rules, over a tool that moves money, one that moves none, and one that only reads."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import Field

from agent import policies, rules
from agent.gate import Facts, Limit, Past, TurnedDown, Verdict, judge
from agent.likeness import effect
from agent.tools import Amount, Arguments, Tool
from agent.validation import ProposedCall, check


class Paying(Arguments):
    """Pay."""

    amount_minor: int = Field(ge=0, le=10**9)
    currency: str = "EUR"
    reason: str = ""


def nothing(*_: Any) -> Any:
    raise AssertionError("the gate runs nothing")


def tool(name: str, **details: Any) -> Tool:
    return Tool(name=name, arguments=Paying, run=nothing, proposed=nothing, applied=nothing, **details)


PAY = tool(
    "Pay",
    amount=lambda asked: Amount(minor=asked.amount_minor, currency=asked.currency),
    hold_above=1000,
    second_above=5000,
    effect=("amount_minor", "currency"),
    again_after=24,
    watch_first=2,
)
CLOSE = tool("Close", effect=("amount_minor",))
READ = tool("Read", writes=False, effect=("amount_minor",), again_after=24, watch_first=9)


@dataclass(frozen=True, kw_only=True)
class Call:
    tool: Tool
    arguments: Paying
    index: int = 0


def call(tool: Tool = PAY, minor: int = 100, *, index: int = 0, currency: str = "EUR", reason: str = "") -> Call:
    given = Paying(customer_id=7, amount_minor=minor, currency=currency, reason=reason)
    return Call(tool=tool, arguments=given, index=index)


def same(*calls: Call) -> dict[int, Any]:
    return {one.index: effect(one.tool, arguments=one.arguments.model_dump(mode="json")) for one in calls}


def used(*pairs: tuple[tuple[str, str, str], int | None]) -> dict[tuple[str, str, str], Limit]:
    return {key: Limit(value=value, version=number) for number, (key, value) in enumerate(pairs, start=1)}


def found(rule: Any, *calls: Call, **facts: Any) -> list[tuple[str, str, int, int | None, int | None]]:
    verdicts = judge(calls, facts=Facts(**{"effects": same(*calls)} | facts), rules=[rule])
    return [(v.action, v.rule, v.version, v.measured, v.allowed) for v in verdicts]


KILL = [
    (call(), {}, 0),
    (call(), used((("kill_switch", "", ""), 1)), 1),
    (call(), used((("kill_switch", "", ""), 0)), 0),
    (call(), used((("kill_switch", "Pay", ""), 1)), 1),
    (call(), used((("kill_switch", "Close", ""), 1)), 0),
    (call(), used((("kill_switch", "Pay", ""), 1), (("kill_switch", "", ""), 0)), 1),
    (call(READ), used((("kill_switch", "", ""), 1)), 0),
]


@pytest.mark.parametrize(("one", "numbers", "verdicts"), KILL)
def test_it_refuses_what_is_paused(one: Call, numbers: Any, verdicts: int) -> None:
    said = found(rules.kill_switch, one, numbers=numbers)
    assert [item[:2] for item in said] == [("refuse", "kill_switch")] * verdicts


EURO = (("per_call", "Pay", "EUR"), 1)
AMOUNTS = [
    (rules.per_call, call(minor=1000), {}, None),
    (rules.per_call, call(minor=1001), {}, (0, 1001, 1000)),
    (rules.per_call, call(CLOSE, 10**6), {}, None),
    (rules.per_call, call(minor=501), used((("per_call", "Pay", ""), 500)), (1, 501, 500)),
    (rules.per_call, call(minor=501), used((("per_call", "Pay", ""), 500), (("per_call", "Pay", "EUR"), 600)), None),
    (rules.per_call, call(minor=9, currency="JPY"), used((("per_call", "Pay", ""), 8), EURO), (1, 9, 8)),
    (rules.per_call, call(minor=10**6), used((("per_call", "Pay", ""), None)), None),
    (rules.per_call, call(minor=1), used((("per_call", "Pay", ""), 0)), (1, 1, 0)),
    (rules.second_reviewer, call(minor=5000), {}, None),
    (rules.second_reviewer, call(minor=5001), {}, (0, 5001, 5000)),
    (rules.second_reviewer, call(minor=4001), used((("second_reviewer", "Pay", "EUR"), 4000)), (1, 4001, 4000)),
    (rules.second_reviewer, call(minor=10**6), used((("second_reviewer", "Pay", ""), None)), None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "one", "numbers", "held"), AMOUNTS)
def test_it_holds_an_amount_above(rule: Any, one: Call, numbers: Any, held: tuple[int, int, int] | None) -> None:
    said = found(rule, one, numbers=numbers)
    assert [(item[0], *item[2:]) for item in said] == ([("hold", *held)] if held else [])


@pytest.mark.parametrize(("minor", "signatures"), [(5000, 1), (5001, 2)])
def test_two_have_to_sign_above_the_second_limit(minor: int, signatures: int) -> None:
    assert policies.needs([call(minor=1), call(minor=minor, index=1)], Facts()) == signatures


USES = [
    (call(), {}, {"Pay": 0}, 2),
    (call(), {}, {"Pay": 1}, 1),
    (call(), {}, {"Pay": 2}, None),
    (call(), {}, {}, 2),
    (call(), used((("first_use", "Pay", ""), None)), {}, None),
    (call(), used((("first_use", "Pay", ""), 5)), {"Pay": 4}, 1),
    (call(CLOSE), {}, {}, None),
    (call(CLOSE), used((("first_use", "Close", ""), 1)), {}, 1),
    (call(READ), {}, {}, None),
]


@pytest.mark.parametrize(("one", "numbers", "uses", "left"), USES)
def test_it_holds_first_uses(one: Call, numbers: Any, uses: dict[str, int], left: int | None) -> None:
    said = found(rules.first_use, one, numbers=numbers, uses=uses)
    assert [item[3] for item in said] == ([left] if left else [])


def past(minor: int = 100, *, hours: float = 1, here: bool = False, of: Tool = PAY) -> Past:
    return Past(effect=same(call(of, minor))[0], hours=hours, here=here)


REPEATS = [
    ([call()], [], {}, []),
    ([call()], [past()], {}, [1]),
    ([call(reason="in other words")], [past()], {}, [1]),
    ([call()], [past(101)], {}, []),
    ([call(currency="JPY")], [past()], {}, []),
    ([call()], [past(hours=24.1)], {}, []),
    ([call()], [past(hours=24.1, here=True)], {}, [1]),
    ([call()], [past(), past(hours=2), past(hours=99)], {}, [2]),
    ([call(), call(index=1)], [], {}, [1]),
    ([call(), call(index=1), call(index=2)], [past()], {}, [1, 2, 3]),
    ([call()], [past()], used((("same_effect", "Pay", ""), None)), []),
    ([call()], [past(hours=47)], used((("same_effect", "Pay", ""), 48)), [1]),
    ([call(CLOSE), call(CLOSE, index=1)], [past(of=CLOSE)], {}, []),
    ([call(CLOSE)], [past(of=CLOSE)], used((("same_effect", "Close", ""), 2)), [1]),
    ([call(READ)], [past(of=READ)], {}, []),
]


@pytest.mark.parametrize(("calls", "before", "numbers", "counts"), REPEATS)
def test_it_holds_the_same_again(calls: list[Call], before: list[Past], numbers: Any, counts: list[int]) -> None:
    assert [item[3] for item in found(rules.same_effect, *calls, past=before, numbers=numbers)] == counts


def test_it_says_when_the_same_was_done() -> None:
    facts = Facts(effects=same(call()), past=[past(hours=0.2), past(hours=5)])
    [verdict] = judge([call()], facts=facts, rules=[rules.same_effect])
    assert verdict.sentence == "The same was done before, 12 min ago. Is it really meant again?"


@pytest.mark.parametrize(("one", "held"), [(call(), 2), (call(reason="please"), 2), (call(minor=99), None), (call(READ), None)])
def test_it_holds_what_was_turned_down(one: Call, held: int | None) -> None:
    said = [TurnedDown(effect=same(call())[0], reason=reason) for reason in ("Too much.", "Still too much.")]
    verdicts = judge([one], facts=Facts(effects=same(one), turned_down=said), rules=[rules.rejected_before])
    assert [verdict.measured for verdict in verdicts] == ([held] if held else [])
    assert all("Still too much." in verdict.sentence for verdict in verdicts)


DAY = ("customer_day", "", "")
SUMS = [
    ([call(minor=1000)], used((DAY, 1000)), {}, []),
    ([call(minor=600), call(minor=401, index=1)], used((DAY, 1000)), {}, [(0, "customer_day", 1001)]),
    ([call(minor=401), call(minor=600, index=1)], used((DAY, 1000)), {}, [(1, "customer_day", 1001)]),
    ([call(minor=1)], used((DAY, 1000)), {("customer_day", "EUR"): 1000}, [(0, "customer_day", 1001)]),
    ([call(minor=1)], used((DAY, 1000)), {("customer_day", "JPY"): 1000, ("staff_day", "EUR"): 1000}, []),
    ([call(minor=1)], used((("staff_day", "", "EUR"), 0)), {}, [(0, "staff_day", 1)]),
    ([call(minor=1)], used((("conversation", "", ""), 0)), {("conversation", "EUR"): 4}, [(0, "conversation", 5)]),
    ([call(minor=2, currency="JPY")], used((("conversation", "", "EUR"), 1)), {}, []),
    ([call(minor=2)], used((DAY, None)), {}, []),
    ([call(minor=2)], {}, {("customer_day", "EUR"): 10**9}, []),
    ([call(CLOSE, 10**6)], used((DAY, 0)), {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "numbers", "sums", "over"), SUMS)
def test_it_holds_what_goes_over_a_cumulative_limit(calls: list[Call], numbers: Any, sums: Any, over: list[Any]) -> None:
    verdicts = judge(calls, facts=Facts(numbers=numbers, sums=sums), rules=[rules.cumulative])
    assert [(v.call_index, v.rule, v.measured) for v in verdicts] == over


def test_it_knows_the_limits_of_the_windows() -> None:
    facts = Facts(numbers=used((DAY, 5), (("customer_day", "", "EUR"), 6), (("per_call", "Pay", ""), 7)))
    assert {key: limit.value for key, limit in facts.windows.items()} == {("customer_day", ""): 5, ("customer_day", "EUR"): 6}
    assert facts.version == 3


def waiving(**changes: Any) -> list[Verdict]:
    waived = {"call_index": 0, "rule": "per_call", "measured": 2000} | changes
    return judge([call(minor=2000)], facts=Facts(), rules=[rules.per_call], waived=[waived])


WAIVED = [({}, 0), ({"measured": 2001}, 0), ({"measured": 1999}, 1), ({"rule": "same_effect"}, 1), ({"call_index": 1}, 1)]


@pytest.mark.parametrize(("changes", "left"), WAIVED)
def test_an_approval_waives_what_it_showed_and_no_more(changes: dict[str, Any], left: int) -> None:
    assert len(waiving(**changes)) == left


def test_nobody_waives_a_refusal() -> None:
    waived = [{"call_index": 0, "rule": "kill_switch", "measured": None}]
    facts = Facts(numbers=used((("kill_switch", "", ""), 1)))
    assert len(judge([call()], facts=facts, rules=[rules.kill_switch], waived=waived)) == 1


def test_it_goes_call_by_call() -> None:
    calls = [call(minor=6000, index=0), call(minor=6000, index=1)]
    found = judge(calls, facts=Facts(), rules=[rules.per_call, rules.second_reviewer])
    assert [(v.call_index, v.rule) for v in found] == [
        (0, "per_call"),
        (0, "second_reviewer"),
        (1, "per_call"),
        (1, "second_reviewer"),
    ]


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), 1.5, "100", None, True, 10**30, [100]], ids=str)
def test_what_is_malformed_never_reaches_a_rule(amount: Any) -> None:
    proposed = ProposedCall(index=0, id="a", tool="Pay", arguments={"customer_id": 7, "amount_minor": amount})
    calls, problems = check([proposed], tools={"Pay": tool("Pay", amount=nothing)}, subject=7)
    assert (calls, len(problems)) == ([], 1)


def test_a_tool_that_declares_no_effect_is_the_same_only_with_the_same_arguments() -> None:
    plain = tool("Plain")
    assert same(call(plain, reason="a")) == same(call(plain, reason="a"))
    assert same(call(plain, reason="a")) != same(call(plain, reason="b"))
