"""The ways out of a message that waits for a person: each from the states that allow it, and what becomes of the money."""

import threading
from typing import Any

import pytest

from outbox import exits, leases, requests
from outbox.models import Message
from outbox.requests import NotPossible
from tests.billing import makers
from tests.outbox.asking import ask, asked_about, carry_out, done, outcome
from tests.outbox.desk import Desk, Row

CONFIRM = "/v1/payment_intents/[^/]+/confirm"
ALLOWED = {
    "look_up": {"accepted", "uncertain", "dead", "succeeded", "rejected"},
    "adopt": set(Message.State.values),
    "resend": {"uncertain", "dead"},
    "settle_rejected": {"uncertain", "dead"},
    "compensate": {"dead"},
    "refund": {"uncertain", "dead", "succeeded", "rejected", "cancelled"},
}


@pytest.mark.parametrize("kind", ALLOWED)
def test_it_takes_a_request_only_where_it_makes_sense(desk: Desk, web: Any, kind: str) -> None:
    for state in Message.State.values:
        message = desk.charge()
        desk.put(message, state)
        possible = requests.possible(web, message=message["id"])
        assert (kind in possible) is (state in ALLOWED[kind]), state
        if kind in possible:
            ask(web, message, kind)  # and only one at a time
        with pytest.raises(NotPossible):
            ask(web, message, kind)


@pytest.mark.parametrize("change", ["repeat = 'harmless'", "destination = 'chat', repeat = 'never'"])
def test_it_asks_nobody_who_cannot_say(desk: Desk, web: Any, change: str) -> None:
    message = desk.charge()
    desk.put(message, "dead")
    desk.owner.execute(f"UPDATE public.outbox_message SET {change}")

    found = set(requests.possible(web, message=message["id"]))

    assert found & {"look_up", "adopt", "settle_rejected"} == set()
    assert ("compensate" in found) is ("never" in change)


def lost(desk: Desk, message: Row, *, when: str, path: str, dead: bool = True) -> Row:
    """Let the answer to a call be lost, and the message be dead of it."""
    if dead:
        desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (message["id"],))
    desk.provider.fault(when, "drop", path=path)
    desk.deliver_once()
    after = desk.read(message)
    assert after["state"] == ("dead" if dead else "uncertain")
    return after


@pytest.mark.parametrize(("kind", "source"), [("adopt", "person"), ("look_up", "lookup")])
@pytest.mark.parametrize("dead", [True, False])
def test_it_takes_over_that_the_money_moved(desk: Desk, web: Any, kind: str, source: str, dead: bool) -> None:
    message = lost(desk, desk.charge(), when="after", path=CONFIRM, dead=dead)

    said = done(desk, web, message, kind)

    after = desk.read(message)
    assert said == {"adopt": "adopted: succeeded", "look_up": "settled: succeeded"}[kind]
    assert (after["state"], after["outcome_source"], desk.invoice(message)) == ("succeeded", source, "paid")
    assert (after["seen"]["status"], after["seen"]["amount"]) == ("succeeded", 48_000)
    assert asked_about(desk, message) == ([("unknown_outcome", "done")] if dead else [])


def test_it_takes_over_that_it_was_refused_without_asking_anybody_again(desk: Desk, web: Any) -> None:
    desk.card("pm_card_visa_chargeDeclined")
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)

    assert done(desk, web, message, "adopt") == "adopted: rejected"

    assert desk.invoice(message) == "charge_failed"
    assert asked_about(desk, message) == [("unknown_outcome", "done")]


def test_it_takes_over_that_the_provider_is_not_done(desk: Desk, web: Any) -> None:
    desk.card("pm_usBankAccount_processing")
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)

    assert done(desk, web, message, "look_up") == "settled: accepted"
    assert desk.invoice(message) == "charge_queued"

    desk.provider.settle(desk.read(message)["provider_id"], "succeeded")
    desk.due(message)
    desk.deliver()
    assert desk.invoice(message) == "paid"


@pytest.mark.parametrize(("when", "said"), [("before", "requires confirmation"), ("none", "has nothing of it")])
def test_it_adopts_nothing_where_nothing_is(desk: Desk, web: Any, when: str, said: str) -> None:
    path = CONFIRM if when == "before" else "/v1/payment_intents"
    message = lost(desk, desk.charge(), when="before", path=path)

    found = done(desk, web, message, "adopt")

    assert found and found.startswith("not possible: the provider") and said in found
    assert desk.read(message)["state"] == "dead"
    assert desk.deliveries(message)[-1][0] == "lookup"


def test_it_keeps_what_it_saw_of_what_it_does_not_know(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="before", path=CONFIRM)

    assert done(desk, web, message, "look_up") == "nothing new: the provider says requires confirmation"

    assert desk.read(message)["seen"]["status"] == "requires_confirmation"


@pytest.mark.parametrize("dead", [True, False])
def test_it_sends_again_with_the_key_that_it_has(desk: Desk, web: Any, dead: bool) -> None:
    message = lost(desk, desk.refund(desk.paid()), when="before", path="/v1/refunds", dead=dead)

    assert done(desk, web, message, "resend") == "put back"

    after = desk.read(message)
    assert (after["state"], after["attempts"]) == ("uncertain", 0)
    desk.deliver()
    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_looks_before_it_sends_again(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.refund(desk.paid()), when="after", path="/v1/refunds")

    assert done(desk, web, message, "resend") == "put back"
    desk.deliver()

    assert desk.deliveries(message)[-1] == ("lookup", "succeeded")
    assert desk.provider.movements(message["uid"]) == [-10_000]


def test_it_sends_nothing_whose_key_the_provider_may_have_forgotten(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.refund(desk.paid()), when="before", path="/v1/refunds")
    ask(web, message, "resend")
    desk.owner.execute("UPDATE public.outbox_message SET key_deadline = now() WHERE id = %s", (message["id"],))

    carry_out(desk)

    assert (outcome(desk) or "").startswith("not possible: the provider may have forgotten its key")
    assert desk.read(message)["state"] == "dead"
    with pytest.raises(NotPossible):
        ask(web, message, "resend")


def test_it_ends_as_refused_what_never_arrived(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.refund(desk.paid()), when="before", path="/v1/refunds")

    assert done(desk, web, message, "settle_rejected") == "settled: rejected"

    after = desk.read(message)
    assert (after["state"], after["outcome_source"], after["refusal"]) == ("rejected", "person", "never_arrived")
    assert desk.refund_status(message) == "refused"
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0
    assert asked_about(desk, message) == [("unknown_outcome", "done")]


def test_it_cancels_at_the_provider_what_could_still_succeed(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="before", path=CONFIRM)

    assert done(desk, web, message, "settle_rejected") == "settled: rejected"

    [intent] = desk.provider.objects("payment_intent", message["uid"])
    assert (intent["status"], desk.invoice(message)) == ("canceled", "charge_failed")


@pytest.mark.parametrize(("card", "said"), [("pm_card_visa", "succeeded"), ("pm_usBankAccount_processing", "processing")])
def test_it_ends_nothing_as_refused_that_moved_or_may_move(desk: Desk, web: Any, card: str, said: str) -> None:
    desk.card(card)
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)

    assert done(desk, web, message, "settle_rejected") == f"not possible: the provider says {said}"

    assert (desk.read(message)["state"], desk.invoice(message)) == ("dead", "charge_queued")


def test_it_ends_what_was_put_right_elsewhere_without_asking_the_provider(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.put(message, "dead")
    desk.owner.execute("UPDATE public.outbox_message SET compensation_needed = true")
    desk.provider.fault("before", "500", method="GET", count=None)

    assert done(desk, web, message, "compensate") == "noted"

    after = desk.read(message)
    assert (after["state"], after["compensation_needed"], after["outcome_source"]) == ("rejected", False, "person")
    assert desk.invoice(message) == "charge_failed"


def test_it_waits_a_while_for_a_provider_that_does_not_answer(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)
    desk.provider.fault("before", "500", method="GET", count=None)
    ask(web, message, "adopt")
    assert (carry_out(desk), outcome(desk)) == (0, None)

    desk.owner.execute("UPDATE public.outbox_request SET requested_at = now() - %s", (exits.PATIENCE,))

    assert carry_out(desk) == 1
    assert (outcome(desk) or "").startswith("not possible: the provider did not answer: 500")
    assert desk.read(message)["state"] == "dead"


def test_it_waits_for_whoever_has_the_message(desk: Desk, web: Any) -> None:
    message = desk.refund(desk.paid())
    desk.put(message, "uncertain")
    claimed = desk.claim()
    assert claimed
    with desk.pool.connection() as conn:
        leases.begin_send(conn, message=claimed)
    desk.owner.execute(
        "INSERT INTO public.outbox_request (message_id, kind, reason, requested_by) VALUES (%s, 'adopt', 'r', 7)",
        (message["id"],),
    )
    assert carry_out(desk) == 0

    desk.work(claimed)

    assert carry_out(desk) == 1


def test_it_does_once_what_two_workers_take_up_at_once(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)
    ask(web, message, "adopt")
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(carry_out(desk))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sum(counts) == 1
    assert desk.read(message)["state"] == "succeeded"
    assert desk.one("SELECT count(*) AS number FROM public.billing_payment")["number"] == 1


def test_what_the_books_do_not_allow_is_said_and_changes_nothing(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)
    makers.make_payment(desk.owner, invoice_id=message["payload"]["invoice_id"])

    assert done(desk, web, message, "adopt") == "not possible: the books do not allow it (billing_payment_one_of_invoice)"

    assert (desk.read(message)["state"], desk.invoice(message)) == ("dead", "charge_queued")


def test_it_finds_nothing_to_do_when_the_same_is_asked_again(desk: Desk, web: Any) -> None:
    message = lost(desk, desk.charge(), when="after", path=CONFIRM)
    assert done(desk, web, message, "adopt") == "adopted: succeeded"

    assert done(desk, web, message, "adopt") == "not possible: the provider says succeeded, and the message is succeeded"

    assert desk.one("SELECT count(*) AS number FROM public.billing_payment")["number"] == 1


@pytest.mark.parametrize("kind", ["adopt", "settle_rejected", "compensate"])
def test_it_lets_what_waits_behind_it_go(desk: Desk, web: Any, kind: str) -> None:
    first, second = desk.refund_pair(desk.paid())
    lost(desk, first, when="after" if kind == "adopt" else "before", path="/v1/refunds")
    desk.deliver()
    assert desk.read(second)["state"] == "ready"
    if kind != "adopt":  # the pair is one that the domain would not have made: let its first be as the domain has it
        for message, status in ((second, "confirmed"), (first, "queued")):
            query = "UPDATE public.billing_refund SET status = %s WHERE id = %s"
            desk.owner.execute(query, (status, message["payload"]["refund_id"]))

    done(desk, web, first, kind)
    desk.deliver()

    assert desk.provider.movements(second["uid"]) == [-10_000]
