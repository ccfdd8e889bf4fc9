"""The gate over the real tools: who may move how much without a person."""

from typing import Any

import pytest

from agent.gate import Facts, Limit, judge
from agent.validation import ProposedCall, check
from billing.policies import RULES
from billing.tools import TOOLS

TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}


def verdicts(tool: str, facts: Facts | None = None, **arguments: Any) -> list[Any]:
    call = ProposedCall(index=0, id="a", tool=tool, arguments={"customer_id": 7, **arguments})
    calls, problems = check([call], tools=TOOLS_BY_NAME, subject=7)
    assert not problems
    return judge(calls, facts=facts or Facts(), rules=RULES)


@pytest.mark.parametrize(
    ("tool", "limit", "extra"),
    [
        ("CreateInvoice", 500_000, {"billing_period": "2026-11-01"}),
        ("ApplyCredit", 100_000, {}),
        ("IssueCreditMemo", 50_000, {"invoice_id": 1, "reason": "Outage"}),
        ("QueueCharge", 500_000, {"invoice_id": 1}),
        ("QueueRefund", 25_000, {"invoice_id": 1, "reason": "Add-on"}),
    ],
)
def test_it_holds_above_the_tools_limit(tool: str, limit: int, extra: dict[str, Any]) -> None:
    assert verdicts(tool, amount_minor=limit, currency="EUR", **extra) == []
    [held] = verdicts(tool, amount_minor=limit + 1, currency="EUR", **extra)
    assert (held.action, held.rule, held.measured, held.allowed, held.currency) == ("hold", "per_call", limit + 1, limit, "EUR")


def test_it_prefers_an_administrators_number() -> None:
    facts = Facts(limits={("QueueRefund", "EUR"): Limit(value=100, version=3), ("QueueRefund", ""): Limit(value=None, version=4)})
    refund = {"invoice_id": 1, "reason": "Add-on", "amount_minor": 101}
    [held] = verdicts("QueueRefund", facts, currency="EUR", **refund)
    assert (held.version, held.allowed) == (3, 100)
    assert verdicts("QueueRefund", facts, currency="USD", **{**refund, "amount_minor": 999_999}) == []


def test_it_pauses_what_writes() -> None:
    facts = Facts(paused=Limit(value=1, version=9))
    [refused] = verdicts("VoidInvoice", facts, invoice_id=1, reason="Wrong month")
    assert (refused.action, refused.rule, refused.version) == ("refuse", "kill_switch", 9)
    assert verdicts("LookUpCustomer", facts) == []
    assert verdicts("AskHuman", facts, question="May I?") == []
