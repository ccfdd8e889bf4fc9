"""The gate over the real tools: who may move how much, where to, and how often, without a person."""

from typing import Any

import pytest

from agent.gate import Facts, Limit, Verdict, judge
from agent.validation import ProposedCall, check
from billing.policies import KNOWLEDGE, RULES
from billing.tools import TOOLS

TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}


def verdicts(tool: str, facts: Facts | None = None, **arguments: Any) -> list[Verdict]:
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


REFUND = {"invoice_id": 1, "reason": "Add-on", "amount_minor": 100, "currency": "EUR"}


@pytest.mark.parametrize(("tool", "limit"), [("QueueRefund", 250_000), ("IssueCreditMemo", 250_000)])
def test_it_asks_two_reviewers_about_the_largest_amounts_that_leave(tool: str, limit: int) -> None:
    assert [v.rule for v in verdicts(tool, **REFUND | {"amount_minor": limit})] == ["per_call"]
    assert [v.rule for v in verdicts(tool, **REFUND | {"amount_minor": limit + 1})] == ["per_call", "second_reviewer"]


@pytest.mark.parametrize(("given", "rules"), [("EUR", []), ("USD", ["currency"]), (None, [])])
def test_it_refuses_another_currency_than_the_customers(given: str | None, rules: list[str]) -> None:
    facts = Facts(domain={"currency": "EUR"})
    found = verdicts("ApplyCredit", facts if given else Facts(), amount_minor=1, currency=given or "USD")
    assert [verdict.rule for verdict in found] == rules
    if rules:
        said = "Customer 7 is billed in EUR, so USD cannot be used."
        assert (found[0].action, found[0].sentence.startswith(said)) == ("refuse", True)


CARDS = [
    ({"cards": {"1": "4242"}, "card": "4242"}, None),
    ({"cards": {"1": "4242"}, "card": "1881"}, "the card on file now is 1881"),
    ({"cards": {"1": "4242"}, "card": None}, "no card is on file now"),
    ({"cards": {"2": "4242"}, "card": "1881"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("known", "says"), CARDS, ids=str)
@pytest.mark.parametrize("by", [{"invoice_id": 1}, {"billing_period": "2026-11-01", "invoice_id": None}], ids=["id", "month"])
def test_it_holds_a_refund_to_another_card(known: dict[str, Any], says: str | None, by: dict[str, Any]) -> None:
    facts = Facts(domain=known | {"invoices": {"2026-11-01": 1}})
    found = verdicts("QueueRefund", facts, **REFUND | by)
    assert [(verdict.action, verdict.rule) for verdict in found] == ([("hold", "destination")] if says else [])
    assert not says or says in found[0].sentence


def test_only_a_refund_has_a_destination() -> None:
    facts = Facts(domain={"cards": {"1": "4242"}, "card": "1881"})
    assert verdicts("QueueCharge", facts, invoice_id=1, amount_minor=1, currency="EUR") == []


def test_a_month_is_the_invoice_that_it_names() -> None:
    known = {"invoices": {"2026-11-01": 42}}
    assert KNOWLEDGE.named({"billing_period": "2026-11-01"}, known)["invoice_id"] == 42
    assert KNOWLEDGE.named({"billing_period": "2026-12-01"}, known)["invoice_id"] == "2026-12-01"
    assert KNOWLEDGE.named({"invoice_id": 7}, known) == {"invoice_id": 7}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_names_arguments_that_it_has(tool: Any) -> None:
    fields = set(tool.arguments.model_fields)
    assert set(tool.effect) <= fields
    assert not {"reason", "description", "question"} & set(tool.effect)
    assert not tool.writes or tool.effect
    assert tool.hold_above is None or set(tool.amount_arguments) <= fields


def test_it_prefers_an_administrators_number() -> None:
    numbers = {
        ("per_call", "QueueRefund", "EUR"): Limit(value=100, version=3),
        ("per_call", "QueueRefund", ""): Limit(value=None, version=4),
    }
    [held] = verdicts("QueueRefund", Facts(numbers=numbers), **REFUND | {"amount_minor": 101})
    assert (held.version, held.allowed) == (3, 100)
    assert verdicts("QueueRefund", Facts(numbers=numbers), **REFUND | {"amount_minor": 200_000, "currency": "USD"}) == []


def test_it_pauses_what_writes() -> None:
    facts = Facts(numbers={("kill_switch", "", ""): Limit(value=1, version=9)})
    [refused] = verdicts("VoidInvoice", facts, invoice_id=1, reason="Wrong month")
    assert (refused.action, refused.rule, refused.version) == ("refuse", "kill_switch", 9)
    assert verdicts("LookUpCustomer", facts) == []
    assert verdicts("AskHuman", facts, question="May I?") == []
