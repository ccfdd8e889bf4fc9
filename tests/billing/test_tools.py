"""The tools: strict arguments, sentences for people, and one file to touch for one more."""

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from agent.batch import run_batch
from agent.tools import Arguments, Tool
from agent.validation import ProposedCall, check
from billing.tools import TOOLS
from ledger import wiring
from tests.agent.batches import Desk
from tests.billing import makers

BY_NAME = {tool.name: tool for tool in TOOLS}
GOOD: dict[str, dict[str, Any]] = {
    "LookUpCustomer": {},
    "CreateInvoice": {"billing_period": "2026-11-01", "amount_minor": 48_000, "currency": "EUR"},
    "ApplyCredit": {"billing_period": "2026-11-01", "amount_minor": 12_000, "currency": "EUR"},
    "IssueCreditMemo": {"invoice_id": 42, "amount_minor": 32_000, "currency": "EUR", "reason": "Outage"},
    "VoidInvoice": {"invoice_id": 42, "reason": "Wrong month"},
    "QueueCharge": {"billing_period": "2026-11-01", "amount_minor": 36_000, "currency": "EUR"},
    "QueueRefund": {"billing_period": "2026-11-01", "amount_minor": 6_400, "currency": "EUR", "reason": "Add-on"},
    "AskHuman": {"question": "Is this customer on the old plan?"},
}
OMITTED = object()


def parse(tool: str, **changes: Any) -> Any:
    sent = {"customer_id": 7, **GOOD[tool], **changes}
    return BY_NAME[tool].arguments.model_validate_json(json.dumps({k: v for k, v in sent.items() if v is not OMITTED}))


def complaint(tool: str, **changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse(tool, **changes)
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in caught.value.errors())


def test_it_has_the_eight_tools() -> None:
    assert [tool.name for tool in TOOLS] == list(GOOD)
    assert {tool.name: tool.hold_above for tool in TOOLS if tool.hold_above} == {
        "CreateInvoice": 500_000,
        "ApplyCredit": 100_000,
        "IssueCreditMemo": 50_000,
        "QueueCharge": 500_000,
        "QueueRefund": 25_000,
    }
    assert [tool.name for tool in TOOLS if not tool.writes] == ["LookUpCustomer", "AskHuman"]
    assert [tool.name for tool in TOOLS if tool.asks_person] == ["AskHuman"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_it_tells_the_model_about_each_argument(tool: Tool) -> None:
    assert tool.arguments.__doc__
    assert len(tool.description) > 60
    schema = tool.arguments.model_json_schema()
    assert schema["additionalProperties"] is False
    assert all(field.get("description") for field in schema["properties"].values())


@pytest.mark.parametrize("tool", GOOD)
def test_it_accepts_sound_arguments(tool: str) -> None:
    arguments = parse(tool)
    assert arguments.model_dump(mode="json", exclude_unset=True) == {"customer_id": 7, **GOOD[tool]}


@pytest.mark.parametrize("value", [True, "7", 7.0, 7.5, 0, -1, None, 2**63, [7], {"id": 7}])
@pytest.mark.parametrize("tool", GOOD)
def test_it_refuses_other_customer_ids(tool: str, value: Any) -> None:
    assert "customer_id" in complaint(tool, customer_id=value)


@pytest.mark.parametrize(
    "value", [True, "48000", "1_000", "４８０", 480.0, 4.5, -1, 1_000_001, 10**40, None, [1], "NaN", OMITTED]
)
@pytest.mark.parametrize("tool", [name for name in GOOD if "amount_minor" in GOOD[name]])
def test_it_refuses_other_amounts(tool: str, value: Any) -> None:
    assert "amount_minor" in complaint(tool, amount_minor=value)


@pytest.mark.parametrize("tool", [name for name in GOOD if "amount_minor" in GOOD[name]])
def test_it_takes_zero_only_for_a_charge(tool: str) -> None:
    if tool == "QueueCharge":
        assert parse(tool, amount_minor=0).amount_minor == 0
    else:
        assert "greater than 0" in complaint(tool, amount_minor=0)


@pytest.mark.parametrize("value", ["eur", "EU", "EURO", "EUR\n", " EUR", "ＥＵＲ", "€", "", 978, None, OMITTED])
@pytest.mark.parametrize("tool", [name for name in GOOD if "currency" in GOOD[name]])
def test_it_refuses_other_currencies(tool: str, value: Any) -> None:
    assert "currency" in complaint(tool, currency=value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("2026-11-02", "named by the first day of its month: 2026-11-01"),
        ("2026-11", "as YYYY-MM-DD"),
        ("2026-11-1", "as YYYY-MM-DD"),
        ("01.11.2026", "as YYYY-MM-DD"),
        ("11/01/2026", "as YYYY-MM-DD"),
        ("20261101", "as YYYY-MM-DD"),
        ("2026-11-01T00:00:00", "as YYYY-MM-DD"),
        ("2026-11-01 ", "as YYYY-MM-DD"),
        ("２０２６-11-01", "as YYYY-MM-DD"),
        ("2026-13-01", "month must be in 1..12"),
        ("2026-02-30", "day"),
        ("1999-12-01", "between 2000-01-01 and 2099-12-01"),
        ("2100-01-01", "between 2000-01-01 and 2099-12-01"),
        ("0000-01-01", "year"),
        (1_793_491_200, "as YYYY-MM-DD"),
        (True, "as YYYY-MM-DD"),
    ],
)
@pytest.mark.parametrize("tool", [name for name in GOOD if "billing_period" in GOOD[name]])
def test_it_refuses_other_periods(tool: str, value: Any, sentence: str) -> None:
    assert sentence in complaint(tool, billing_period=value)


@pytest.mark.parametrize("tool", [name for name in GOOD if name not in ("LookUpCustomer", "CreateInvoice", "AskHuman")])
def test_it_wants_one_name_for_an_invoice(tool: str) -> None:
    both = complaint(tool, invoice_id=42, billing_period="2026-11-01")
    assert "invoice_id" in both
    assert "billing_period" in both
    if tool == "ApplyCredit":
        assert parse(tool, invoice_id=OMITTED, billing_period=OMITTED).to_invoice is False
    else:
        neither = complaint(tool, invoice_id=OMITTED, billing_period=OMITTED)
        assert "give exactly one of invoice_id and billing_period" in neither


@pytest.mark.parametrize("value", [True, "42", 42.0, 0, -1, 2**63])
def test_it_refuses_other_invoice_ids(value: Any) -> None:
    assert "invoice_id" in complaint("VoidInvoice", invoice_id=value)


@pytest.mark.parametrize("value", ["", "  ", "no", "x" * 501, "a\x00b", "a\x1bb", 7, None, ["Outage"], OMITTED])
@pytest.mark.parametrize("tool", ["IssueCreditMemo", "VoidInvoice", "QueueRefund"])
def test_it_refuses_other_reasons(tool: str, value: Any) -> None:
    assert "reason" in complaint(tool, reason=value)


@pytest.mark.parametrize("value", ["x" * 501, "a\x00b", 7, None])
def test_it_refuses_other_descriptions(value: Any) -> None:
    assert "description" in complaint("CreateInvoice", description=value)


@pytest.mark.parametrize("tool", GOOD)
def test_it_refuses_what_nobody_asked_for(tool: str) -> None:
    assert "is_admin: Extra inputs are not permitted" in complaint(tool, is_admin=True)


def test_it_refuses_lone_surrogates_before_they_reach_a_tool() -> None:
    sent = {"customer_id": 7, **GOOD["VoidInvoice"], "reason": "bad \ud800 text"}
    sound, problems = check([ProposedCall(index=0, id="a", tool="VoidInvoice", arguments=sent)], tools=BY_NAME, subject=7)
    assert not sound
    assert [problem.sentence for problem in problems] == ["The arguments are not plain JSON."]


@pytest.mark.parametrize(
    ("tool", "changes", "sentence"),
    [
        ("LookUpCustomer", {}, "Look up customer 7"),
        ("CreateInvoice", {}, "Create an invoice of €480.00 for November 2026"),
        ("ApplyCredit", {}, "Use €120.00 of credit for the invoice of November 2026"),
        ("ApplyCredit", {"billing_period": OMITTED}, "Use €120.00 of credit outside an invoice"),
        ("IssueCreditMemo", {}, "Issue a credit memo of €320.00 on invoice 42"),
        ("VoidInvoice", {}, "Void invoice 42"),
        ("QueueCharge", {}, "Charge €360.00 for the invoice of November 2026"),
        ("QueueCharge", {"amount_minor": 0}, "Close the invoice of November 2026: nothing is due"),
        ("QueueRefund", {"currency": "JPY"}, "Refund ¥6,400 of the invoice of November 2026"),
        ("AskHuman", {}, "Ask a person: Is this customer on the old plan?"),
    ],
)
def test_it_says_what_a_call_would_do(tool: str, changes: dict[str, Any], sentence: str) -> None:
    assert BY_NAME[tool].proposed(parse(tool, **changes)) == sentence


def test_it_says_what_calls_did(desk: Desk) -> None:
    desk.customer = makers.make_customer(desk.owner, credit_minor=12_000)
    period = {"billing_period": "2026-11-01", "currency": "EUR"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("CreateInvoice", {**period, "amount_minor": 148_000}),
        ("ApplyCredit", {**period, "amount_minor": 2_000}),
        ("ApplyCredit", {"currency": "EUR", "amount_minor": 1_000}),
        ("QueueCharge", {**period, "amount_minor": 146_000}),
        ("LookUpCustomer", {}),
    ]
    assert said(desk, *calls) == [
        "Created invoice # of €1,480.00 for November 2026",
        "Used €20.00 of credit for invoice #; €1,460.00 is due, the balance is now €100.00",
        "Deducted €10.00 of credit; the balance is now €90.00",
        "Charge €1,460.00 to card 4242 for invoice #",
        "Looked up Sample Cycles BV",
    ]


def test_it_says_what_calls_on_other_invoices_did(desk: Desk) -> None:
    desk.customer = makers.make_customer(desk.owner, credit_minor=50_000)
    makers.make_paid_invoice(desk.owner, customer_id=desk.customer)
    october, november = {"billing_period": "2026-10-01", "currency": "EUR"}, {"billing_period": "2026-11-01"}
    assert said(
        desk,
        ("QueueRefund", {**october, "amount_minor": 6_400, "reason": "Add-on"}),
        ("IssueCreditMemo", {**october, "amount_minor": 1_000, "reason": "Outage"}),
        ("CreateInvoice", {**november, "currency": "EUR", "amount_minor": 48_000}),
        ("ApplyCredit", {**november, "currency": "EUR", "amount_minor": 48_000}),
        ("VoidInvoice", {**november, "reason": "Wrong month"}),
        ("CreateInvoice", {**november, "currency": "EUR", "amount_minor": 100}),
        ("ApplyCredit", {**november, "currency": "EUR", "amount_minor": 100}),
        ("QueueCharge", {**november, "currency": "EUR", "amount_minor": 0}),
    ) == [
        "Refund €64.00 of invoice # to card 4242",
        "Issued a credit memo of €10.00 on invoice #; the balance is now €510.00",
        "Created invoice # of €480.00 for November 2026",
        "Used €480.00 of credit for invoice #; €0.00 is due, the balance is now €30.00",
        "Voided invoice #; €480.00 of credit is back",
        "Created invoice # of €1.00 for November 2026",
        "Used €1.00 of credit for invoice #; €0.00 is due, the balance is now €509.00",
        "Invoice # is paid: nothing was due",
    ]


def said(desk: Desk, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """Apply the calls as one batch and return what people read about each, ids as #."""
    result = run_batch(desk.pool, batch=desk.batch(*calls))
    assert result.kind == "applied", result
    sentences = []
    for (name, given), answer in zip(calls, result.answers, strict=True):
        arguments = BY_NAME[name].arguments.model_validate_json(json.dumps({"customer_id": desk.customer, **given}))
        sentences.append(re.sub(r"(?<=nvoice )\d+", "#", BY_NAME[name].applied(arguments, json.loads(answer.text))))
    return sentences


class CountInvoices(Arguments):
    """Count the customer's invoices, void ones too."""


def count_invoices(conn: Any, asked: CountInvoices, cause: Any) -> dict[str, Any]:
    found = conn.execute("SELECT count(*) FROM public.billing_invoice WHERE customer_id = %s", (asked.customer_id,)).fetchone()
    return {"invoices": found[0]}


def test_it_takes_one_declaration_to_add_a_tool(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    one_more = Tool(
        name="CountInvoices",
        arguments=CountInvoices,
        run=count_invoices,
        proposed=lambda asked: "Count the invoices",
        applied=lambda asked, result: f"There are {result['invoices']} invoices",
        writes=False,
    )
    monkeypatch.setattr("billing.tools.TOOLS", [*TOOLS, one_more])
    wiring.plugged.cache_clear()
    result = run_batch(desk.pool, batch=desk.batch(("CreateInvoice", GOOD["CreateInvoice"]), ("CountInvoices", {})))
    wiring.plugged.cache_clear()
    assert [answer.status for answer in result.answers] == ["applied", "applied"]
    assert json.loads(result.answers[1].text) == {"invoices": 1}
    assert desk.count("ledger_execution", "tool = 'CountInvoices'") == 1
