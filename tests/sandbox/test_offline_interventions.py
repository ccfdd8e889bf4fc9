"""The offline model reads what people made of its step: it tells staff plainly and sends nothing again."""

import json

import pytest

from tests.sandbox.offline_talks import Talk, sent

ALL = "Invoice November 2026 for €480, use €100 of their credit and charge the rest"
INVOICE = json.dumps({"invoice_id": 7, "status": "draft", "amount_due_minor": 40_000, "currency": "EUR"})
CREDIT = json.dumps({"invoice_id": 7, "amount_due_minor": 38_000, "credit_balance_minor": 2_000, "currency": "EUR"})
CHARGE = json.dumps({"invoice_id": 7, "status": "charge_queued", "card_last4": "4242", "currency": "EUR"})


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    assert [call["name"] for call in made.say(ALL).tool_calls] == ["CreateInvoice", "ApplyCredit", "QueueCharge"]
    return made


def changed(text: str, result: str) -> str:
    return f"APPLIED AS CHANGED BY A REVIEWER ({text}): {result}"


def test_it_says_what_was_changed(talk: Talk) -> None:
    reply = talk.told(INVOICE, changed("amount_minor: 10000 → 8000", CREDIT), changed("amount_minor: 38000 → 40000", CHARGE))
    assert not reply.tool_calls
    assert "Used €80.00 of credit" in reply.text
    assert "A reviewer changed this before it ran: €80.00 instead of €100.00." in reply.text
    assert "The charge of €400.00 is queued" in reply.text


def test_it_says_what_was_removed_and_why(talk: Talk) -> None:
    removed = "NOT APPLIED: a reviewer removed this call. The card was replaced. Do not send it again."
    reply = talk.told(INVOICE, CREDIT, removed)
    assert not reply.tool_calls
    assert "Created invoice 7 of €480.00" in reply.text
    assert reply.text.endswith("A reviewer removed a part, which was not done: charge €380.00. The card was replaced.")


def test_it_says_that_a_person_did_it(talk: Talk) -> None:
    reply = talk.told(*(f"APPLIED BY A PERSON: {result}" for result in (INVOICE, CREDIT, CHARGE)))
    assert not reply.tool_calls
    assert reply.text.startswith("A reviewer did this themselves. Created invoice 7 of €480.00")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("REJECTED: Wrong month.", "A reviewer rejected this: Wrong month. Nothing was changed."),
        ("WITHDRAWN: Support 7 withdrew the request.", "Support 7 withdrew the request. Nothing was changed."),
        ("EXPIRED: Nobody decided in time.", "Nobody decided in time. Nothing was changed."),
    ],
)
def test_it_tells_a_rejection_from_a_withdrawal_and_from_nobody(talk: Talk, told: str, said: str) -> None:
    reply = talk.told(*[f"{told} Nothing of this step was saved. Do not send it again."] * 3)
    assert (reply.text, reply.tool_calls) == (said, [])


def test_it_remembers_what_was_applied_not_what_it_sent(talk: Talk) -> None:
    talk.told(INVOICE, changed("amount_minor: 10000 → 8000", CREDIT), changed("amount_minor: 38000 → 40000", CHARGE))
    assert "Used €80.00 of credit" in talk.say("What did you do?").text
    assert sent(talk.say("Void it")) == [("VoidInvoice", {"invoice_id": 7})]


def test_it_reads_a_change_of_words_too(talk: Talk) -> None:
    reply = talk.told(changed("description: null → Seats, annual", INVOICE), CREDIT, CHARGE)
    assert "description “Seats, annual” instead of no description" in reply.text
