"""Editing what is proposed: a form made from the tool's schema, the model's own messages, and the revision that comes of it."""

from typing import Any

import pytest
from django.http import QueryDict

from agent import edits as judged
from agent import validation
from agent.tools import registry
from agent.validation import ProposedCall
from escalations import edits, facts, lifecycle, previews
from escalations.call_forms import CallForm
from escalations.edits import Edit
from tests.escalations.questions import CALLS, SUBJECT, ask, edited, row, show, sign
from tests.escalations.scenes import person

MEMO = CALLS[0]


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi")}


def typed(call: dict[str, Any], **changes: str) -> QueryDict:
    """Return what a browser would send of an untouched form, with changes."""
    form = CallForm(call=call)
    data = QueryDict(mutable=True)
    for name in form.fields:
        value = form[name].value()
        if value is not None:
            data[f"call-{call['index']}-{name}"] = str(form.fields[name].prepare_value(value))
    data.update({f"call-{call['index']}-{name}": value for name, value in changes.items()})
    return data


def after(call: dict[str, Any], **changes: str) -> dict[str, Any]:
    form = CallForm(typed(call, **changes), call=call)
    assert form.is_valid(), form.errors
    return form.arguments


# -- the form -----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["tool"])
def test_an_untouched_form_changes_nothing(call: dict[str, Any]) -> None:
    assert after(call) == call["arguments"]


def test_every_tool_has_a_form_that_keeps_its_customer() -> None:
    for name in registry():
        form = CallForm(call={"index": 0, "tool": name, "arguments": {"customer_id": SUBJECT}})
        assert "customer_id" not in form.fields
        assert set(form.fields) == set(registry()[name].arguments.model_fields) - {"customer_id"}


def test_the_customer_cannot_be_typed() -> None:
    data = typed(MEMO)
    data["call-0-customer_id"] = "7"
    form = CallForm(data, call=MEMO)
    assert form.is_valid()
    assert form.arguments["customer_id"] == SUBJECT


def test_amounts_are_money_to_people_and_minor_units_to_the_tool() -> None:
    form = CallForm(call=MEMO)
    assert form["amount_minor"].field.label == "Amount"
    assert 'value="600.00"' in str(form["amount_minor"])
    assert form["amount_minor"].help_text == "At most €10,000.00."
    assert "minor" not in form["amount_minor"].help_text
    assert after(MEMO, amount_minor="1,250.5")["amount_minor"] == 125_050
    yen = MEMO | {"arguments": MEMO["arguments"] | {"currency": "JPY"}}
    assert after(yen, amount_minor="800")["amount_minor"] == 800


def test_what_is_no_amount_is_said_in_a_sentence() -> None:
    assert edits.problems({0: Edit(typed(MEMO, amount_minor="a lot"), call=MEMO)}) == [
        "Call 1: Amount: 'a lot' is not an amount in EUR; write it like €1,234.56."
    ]


def test_the_currency_stays_and_dates_are_dates() -> None:
    assert after(MEMO, currency="USD")["currency"] == "EUR"
    form = CallForm(call=MEMO)
    assert 'type="date"' in str(form["billing_period"])
    assert after(MEMO, billing_period="2026-10-01")["billing_period"] == "2026-10-01"
    assert "maxlength" in str(form["reason"])
    assert form["reason"].help_text == "Why, as the customer reads it on the credit memo."
    assert form["billing_period"].help_text.endswith("instead of “Invoice”.")
    assert not [field.name for field in form if "_" in field.help_text]


def test_one_name_of_an_invoice_is_exchanged_for_the_other() -> None:
    changed = after(MEMO, billing_period="", invoice_id="12")
    assert changed == {name: value for name, value in MEMO["arguments"].items() if name != "billing_period"} | {"invoice_id": 12}


def test_the_page_gets_each_field_as_what_it_is() -> None:
    edit = Edit(call=MEMO)
    assert [(one.label, one.kind, one.value) for one in edit.fields] == [
        ("Invoice", "number", ""),
        ("Billing period", "date", "2026-09-01"),
        ("Amount", "amount", "600.00"),
        ("Reason", "long", "Outage"),
    ]
    assert edit.fixed == [("Customer", "42"), ("Currency", "EUR")]


# -- the messages -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "shown"),
    [
        ({"amount_minor": 0}, "amount_minor", "Input should be greater than €0.00."),
        ({"amount_minor": 1_000_001}, "amount_minor", "Input should be less than or equal to €10,000.00."),
        ({"reason": "no"}, "reason", "String should have at least 3 characters."),
        (
            {"billing_period": "2026-09-02"},
            "billing_period",
            "A billing period is named by the first day of its month: 2026-09-01.",
        ),
        ({"invoice_id": 3}, "", "Give exactly one of invoice_id and billing_period."),
    ],
)
def test_the_model_and_people_get_the_same_message(changes: dict[str, Any], field: str, shown: str) -> None:
    arguments = MEMO["arguments"] | changes
    [fault] = judged.check([MEMO | {"arguments": arguments}], subject=SUBJECT)
    [problem] = validation.check(
        [ProposedCall(index=0, id="call-0", tool=MEMO["tool"], arguments=arguments)], tools=registry(), subject=SUBJECT
    )[1]
    assert fault.field == field
    assert fault.sentence in problem.sentence
    edit = Edit(typed(MEMO), call=MEMO)
    assert edits.problems({0: edit}) == []
    edits.refused({0: edit}, facts.EditRefused(faults=[fault]))
    under = {one.key.removeprefix("call-0-"): one.errors for one in edit.fields} | {"": edit.errors}
    assert under[field] == [shown]


def test_another_customer_and_another_tool_are_refused_as_the_models_own_are() -> None:
    foreign = MEMO | {"arguments": MEMO["arguments"] | {"customer_id": 7}}
    [fault] = judged.check([foreign], subject=SUBJECT)
    assert (fault.field, fault.sentence) == ("", "Customer 7 does not exist in this conversation; it is about customer 42.")
    [unknown] = judged.check([MEMO | {"tool": "DropTables"}], subject=SUBJECT)
    assert unknown.sentence.startswith("There is no tool of this name.")


# -- the revision -------------------------------------------------------------------------------


def revise(web: Any, escalation: int, user: int, calls: Any, **more: Any) -> int:
    return lifecycle.revise(web, **{"escalation": escalation, "user": user, "calls": calls, "shown": 0, **more})


def test_an_edit_is_kept_whole_and_previewed(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    assert revise(web, escalation, people["priya"], edited(20_000, drop=1), text=" Too much. ") == 1
    number, calls, author, lowers, as_person, text, size = web.execute(
        "SELECT number, calls, author, lowers, as_person, text, length(calls_hash) FROM public.escalations_revision"
        " WHERE escalation_id = %s ORDER BY number DESC",
        (escalation,),
    ).fetchone()
    assert calls == [MEMO | {"arguments": MEMO["arguments"] | {"amount_minor": 20_000}}]
    assert (number, author, lowers, as_person, text, size) == (1, people["priya"], True, False, "Too much.", 32)
    waiting = previews.unmade(agent, thread=row(web, escalation, "thread"))
    assert [(one.number, one.author) for one in waiting] == [(0, None), (1, people["priya"])]
    told = web.execute("SELECT kind, detail FROM public.escalations_act ORDER BY id").fetchall()
    assert [kind for kind, _ in told] == ["edited", "previewed"]
    assert told[0][1] == {"revision": 1, "as_person": False}


def test_a_dropped_call_can_come_back(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    revise(web, escalation, people["priya"], edited(60_000, drop=0))
    assert revise(web, escalation, people["priya"], edited(50_000), shown=1) == 2
    assert sign(web, escalation, people["priya"], show(agent, escalation, held=False)).decision


@pytest.mark.parametrize("calls", [[], [{"index": 9, "arguments": {}}], edited() + edited()])
def test_nothing_but_the_agents_calls_can_stay(agent: Any, web: Any, people: Any, calls: Any) -> None:
    escalation = ask(agent, kind="approval")
    with pytest.raises(facts.EditRefused):
        revise(web, escalation, people["priya"], calls)


def test_what_is_not_sound_is_refused_with_its_fields(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    with pytest.raises(facts.EditRefused) as refused:
        revise(web, escalation, people["priya"], edited(0, reason="no"))
    assert [(fault.call_index, fault.field) for fault in refused.value.faults] == [(0, "amount_minor"), (0, "reason")]
    assert web.execute("SELECT count(*) FROM public.escalations_revision").fetchone() == (1,)


def test_only_the_newest_is_built_on(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    revise(web, escalation, people["priya"], edited(20_000))
    with pytest.raises(facts.Outdated):
        revise(web, escalation, people["ravi"], edited(30_000))


def test_the_same_again_is_no_edit(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    with pytest.raises(facts.NothingChanged):
        revise(web, escalation, people["priya"], edited(60_000))
    assert revise(web, escalation, people["priya"], edited(60_000), as_person=True) == 1  # taking over is one


@pytest.mark.parametrize("kind", ["asked", "budget", "dirty_state"])
def test_what_proposes_nothing_is_not_edited(agent: Any, web: Any, people: Any, kind: str) -> None:
    with pytest.raises(facts.NotAllowed):
        revise(web, ask(agent, kind=kind), people["priya"], edited())


def test_what_another_holds_is_not_edited(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    lifecycle.claim(web, escalation=escalation, user=people["ravi"])
    with pytest.raises(facts.HeldByAnother, match="ravi"):
        revise(web, escalation, people["priya"], edited())
