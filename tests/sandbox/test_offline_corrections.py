"""What the offline model does when a step did not go as it hoped: it corrects from the words that it read."""

import pytest

from tests.sandbox.offline_sentences import NOV, OCT
from tests.sandbox.offline_talks import Talk, sent

CREATE = ("CreateInvoice", NOV | {"amount_minor": 48000})
REQUEST = "Bill November at €480, apply €150 of credit, then charge the remainder to the card"


@pytest.mark.parametrize(("balance", "words"), [(12000, "€120.00"), (9731, "€97.31"), (1, "€0.01")])
def test_it_uses_the_balance_that_the_error_names_and_charges_the_rest(balance: int, words: str) -> None:
    talk = Talk()
    talk.say(REQUEST)
    reply = talk.fail(1, f"The credit balance is {words} ({balance} minor units), so €150.00 cannot be used.")
    assert sent(reply) == [
        CREATE,
        ("ApplyCredit", NOV | {"amount_minor": balance}),
        ("QueueCharge", NOV | {"amount_minor": 48000 - balance}),
    ]
    assert reply.text.startswith(f"The credit balance is {words}, so €150.00 cannot be used. I will use {words}")


def test_it_leaves_credit_out_when_there_is_none() -> None:
    talk = Talk()
    talk.say(REQUEST)
    reply = talk.fail(1, "The credit balance is €0.00 (0 minor units), so €150.00 cannot be used.")
    assert sent(reply) == [CREATE, ("QueueCharge", NOV | {"amount_minor": 48000})]


def test_it_charges_more_than_was_said_only_because_less_credit_was_there() -> None:
    talk = Talk()
    talk.say("Bill €480 for November, use €150 of credit, charge €330")
    reply = talk.fail(1, "The credit balance is €120.00 (12000 minor units), so €150.00 cannot be used.")
    assert sent(reply)[2] == ("QueueCharge", NOV | {"amount_minor": 36000})


def test_it_does_not_charge_more_than_a_person_wrote() -> None:
    talk = Talk()
    talk.say("Charge €330 for November")
    reply = talk.fail(
        0, "Invoice 42 has €480.00 (48000 minor units) due, so a charge of €330.00 is not possible: charge what is due."
    )
    assert not reply.tool_calls
    assert "€480.00 due" in reply.text


def test_it_charges_what_is_due_when_that_is_less() -> None:
    talk = Talk()
    talk.say("Charge €500 for November")
    reply = talk.fail(
        0, "Invoice 42 has €480.00 (48000 minor units) due, so a charge of €500.00 is not possible: charge what is due."
    )
    assert sent(reply) == [("QueueCharge", NOV | {"amount_minor": 48000})]


def test_it_refunds_what_is_left() -> None:
    talk = Talk()
    talk.say("Refund €700 for October")
    reply = talk.fail(0, "€640.00 (64000 minor units) of invoice 41 can still be refunded, so €700.00 cannot be used.")
    assert sent(reply) == [("QueueRefund", OCT | {"amount_minor": 64000})]


def test_it_counts_what_earlier_calls_of_the_step_use() -> None:
    talk = Talk()
    talk.say("Use €100 of credit on November and use €50 of credit on invoice 40")
    reply = talk.fail(1, "The credit balance is €120.00 (12000 minor units), and the calls of this step together use more.")
    assert [arguments["amount_minor"] for _, arguments in sent(reply)] == [10000, 2000]


def test_it_never_lowers_one_half_of_a_refund() -> None:
    talk = Talk()
    talk.say("Take 80 euros off the balance, then refund the same amount for October to the card")
    reply = talk.fail(0, "The credit balance is €50.00 (5000 minor units), so €80.00 cannot be used.")
    assert not reply.tool_calls
    assert "€50.00" in reply.text


@pytest.mark.parametrize(
    "sentence",
    [
        "Invalid argument customer_id: Input should be a valid integer.",
        "customer_id must be the number of this conversation's customer.",
        "Customer 43 does not exist in this conversation; it is about customer 42.",
        "Error invoking tool 'QueueCharge' with kwargs {'customer_id': \"42'\"} with error:\n"
        " customer_id: Input should be a valid integer\n Please fix the error and try again.",
    ],
)
def test_it_uses_the_conversations_customer(sentence: str) -> None:
    talk = Talk()
    talk.say(f"{REQUEST} [misbehave: stray quote]")
    reply = talk.fail(2, sentence)
    assert [call["args"]["customer_id"] for call in reply.tool_calls] == [42, 42, 42]
    assert len(reply.tool_calls) == 3


def test_it_uses_the_invoice_that_is_there_already() -> None:
    talk = Talk()
    talk.say("Invoice November for €480 and charge it")
    reply = talk.fail(
        0, "There is an invoice for November 2026 already: invoice 42 of €480.00 (draft). Use it, or void it first."
    )
    assert sent(reply) == [("QueueCharge", NOV | {"amount_minor": 48000})]


@pytest.mark.parametrize("request_", ["Invoice November for €500 and charge it", "Invoice November for €480"])
def test_it_creates_nothing_beside_an_invoice_that_is_there_already(request_: str) -> None:
    talk = Talk()
    talk.say(request_)
    reply = talk.fail(
        0, "There is an invoice for November 2026 already: invoice 42 of €480.00 (draft). Use it, or void it first."
    )
    assert not reply.tool_calls
    assert "invoice 42 of €480.00" in reply.text


def test_it_looks_the_customer_up_once_when_the_error_says_nothing() -> None:
    talk = Talk()
    talk.say("Void invoice 42")
    looked = talk.fail(0, "A rule of the data does not allow this change.", look_up=False)
    assert sent(looked) == [("LookUpCustomer", {})]
    talk.messages.pop()
    reply = talk.goes_on()
    assert not reply.tool_calls
    assert "A rule of the data does not allow this change. Nothing was changed." in reply.text


@pytest.mark.parametrize(
    "sentence",
    [
        "An administrator has paused changes. Nothing can be changed now; tell the staff member and do not try again.",
        "Customer 42 has no card on file, so nothing can be charged.",
        "Invoice 42 has a charge under way; wait until the provider has answered.",
        "Customer 42 is billed in EUR, so USD cannot be used.",
    ],
)
def test_it_gives_up_at_once_when_nothing_can_help(sentence: str) -> None:
    talk = Talk()
    talk.say("Charge €480 for November")
    reply = talk.fail(0, sentence, look_up=False)
    assert not reply.tool_calls
    assert sentence in reply.text


def test_it_sends_the_same_again_once_when_the_data_was_busy() -> None:
    talk = Talk()
    first = talk.say("Void invoice 42")
    again = talk.fail(0, "The data was busy for too long. Send the same step again.")
    assert sent(again) == sent(first)
    assert again.tool_calls[0]["id"] != first.tool_calls[0]["id"]
    assert not talk.fail(0, "The data was busy for too long. Send the same step again.").tool_calls


def test_it_does_not_send_a_rejected_step_again() -> None:
    talk = Talk()
    talk.say("Refund €300 for October")
    reply = talk.reject("The customer already got it in cash.")
    assert not reply.tool_calls
    assert reply.text == "A reviewer rejected this: The customer already got it in cash. Nothing was changed."


def test_it_says_what_no_tool_takes() -> None:
    talk = Talk()
    talk.say("Invoice December for €2,000,000")
    reply = talk.fail(0, "Invalid argument amount_minor: Input should be less than or equal to 1000000.", look_up=False)
    assert not reply.tool_calls
    assert "less than or equal to 1000000. Nothing was changed." in reply.text


def test_it_reports_from_the_results() -> None:
    talk = Talk()
    talk.say(REQUEST)
    reply = talk.apply(
        {"invoice_id": 77},
        {"invoice_id": 77, "amount_due_minor": 33000, "credit_balance_minor": 500, "currency": "EUR"},
        {"invoice_id": 77, "card_last4": "1881"},
    )
    assert reply.text == (
        "Created invoice 77 of €480.00 for November 2026. Used €150.00 of credit; €330.00 is still due; the balance is now €5.00."
        " The charge of €330.00 is queued; the card ending in 1881 is charged in a moment."
    )


def test_it_works_in_a_currency_without_decimals() -> None:
    talk = Talk(currency="JPY")
    talk.say("Bill ¥48,000 for November, use ¥15,000 of credit and charge the rest")
    reply = talk.fail(1, "The credit balance is ¥12,000 (12000 minor units), so ¥15,000 cannot be used.")
    assert [(name, arguments["amount_minor"]) for name, arguments in sent(reply)] == [
        ("CreateInvoice", 48000),
        ("ApplyCredit", 12000),
        ("QueueCharge", 36000),
    ]
    assert {call["args"]["currency"] for call in reply.tool_calls} == {"JPY"}
