"""What the provider says late: money that moved for what was called refused, and refunds that came back after their success."""

from typing import Any

import pytest

from billing import invoices
from billing.invoices import Reference
from ledger import invariants
from outbox import webhooks
from tests.billing import makers
from tests.outbox.asking import asked_about, carry_out, done
from tests.outbox.desk import Desk, Row
from tests.outbox.events import stored

CONFIRM = "/v1/payment_intents/[^/]+/confirm"

OF_CALLS = {"outbox.message_has_its_call"}  # these tests call the domain's verbs, not the agent


@pytest.fixture
def books(keeper: Any) -> Any:
    """Check at the end that the books, the messages and the evidence fit, however late the news came."""
    yield
    asked = [one for one in invariants.every() if one.name.startswith(("billing.", "outbox.")) and one.name not in OF_CALLS]
    found = invariants.findings(keeper, quiet=False, invariants=asked)
    assert [one.invariant.name for one in found if not one.holds] == []


def tell(desk: Desk, message: Row, kind: str, *, object_id: str, status: str, event: str = "evt_1") -> str | None:
    """Let the provider's event about an object come, and return what became of it."""
    about = {"id": object_id, "metadata": {"backstop_uid": str(message["uid"])}, "status": status}
    stored(desk.owner, kind=kind, about=about, event_id=event)
    webhooks.process_due(desk.pool, go_on=lambda: True)
    found: str | None = desk.one("SELECT outcome FROM public.outbox_webhook_event WHERE event_id = %s", event)["outcome"]
    return found


def ended(desk: Desk, web: Any, message: Row) -> Row:
    """Let a charge or refund be dead without a trace at the provider, and a person end it as refused."""
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (message["id"],))
    desk.provider.fault("before", "drop", path=message["steps"][0]["path"])
    desk.deliver_once()
    assert done(desk, web, message, "settle_rejected") == "settled: rejected"
    return desk.read(message)


def moved(desk: Desk, message: Row) -> str:
    """Let the first call arrive after all, and move the money; return what the provider calls it."""
    params = desk.provider.flat(message["steps"][0]["params"])
    more = {"confirm": "true", "off_session": "true"} if message["topic"] == "payment.charge" else {}
    made: str = desk.provider.create(message["steps"][0]["path"], **params, **more)["id"]
    return made


def void(desk: Desk, message: Row) -> None:
    with makers.about(desk.agent, desk.customer) as conn:
        invoices.void(conn, invoice=Reference(customer_id=desk.customer, invoice_id=message["payload"]["invoice_id"]))


def payments(desk: Desk) -> list[tuple[int, int, bool]]:
    return desk.owner.execute("SELECT amount_minor, refunded_minor, stray FROM public.billing_payment ORDER BY id").fetchall()


@pytest.mark.usefixtures("books")
def test_a_charge_that_succeeds_after_all_pays_its_invoice(desk: Desk, web: Any) -> None:
    message = ended(desk, web, desk.charge())
    intent = moved(desk, message)

    assert tell(desk, message, "payment_intent.succeeded", object_id=intent, status="succeeded") == "settled: succeeded"

    after = desk.read(message)
    assert (after["state"], after["refusal"], after["provider_id"]) == ("succeeded", None, intent)
    assert (desk.invoice(message), payments(desk)) == ("paid", [(48_000, 0, False)])
    assert asked_about(desk, message) == [("unknown_outcome", "done")]


@pytest.mark.usefixtures("books")
@pytest.mark.parametrize("meanwhile", ["voided", "charged again", "being charged"])
def test_money_for_what_is_not_owed_any_more_waits_for_a_person_and_is_sent_back(desk: Desk, web: Any, meanwhile: str) -> None:
    message = ended(desk, web, desk.charge())
    if meanwhile == "voided":
        void(desk, message)
    else:
        desk.charge_again(message["payload"]["invoice_id"])
    if meanwhile == "charged again":
        desk.deliver()
    intent = moved(desk, message)

    assert tell(desk, message, "payment_intent.succeeded", object_id=intent, status="succeeded") == "settled: succeeded"

    assert payments(desk)[-1] == (48_000, 0, True)
    assert asked_about(desk, message)[-1] == ("dirty_state", "open")
    assert (done(desk, web, message, "refund") or "").endswith("of €480.00 is queued")
    desk.deliver()
    refund = desk.one("SELECT * FROM public.outbox_message WHERE topic = 'payment.refund'")
    assert (refund["state"], desk.refund_status(refund)) == ("succeeded", "confirmed")
    assert desk.provider.movements(refund["uid"]) == [-48_000]
    assert (48_000, 48_000, True) in payments(desk)
    assert done(desk, web, message, "refund") == "not possible: All of it was sent back, or is on its way."


@pytest.mark.usefixtures("books")
def test_a_person_may_find_the_money_and_send_it_back_at_once(desk: Desk, web: Any) -> None:
    message = ended(desk, web, desk.charge())
    void(desk, message)
    moved(desk, message)

    assert (done(desk, web, message, "refund") or "").endswith("of €480.00 is queued")

    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "void")
    assert asked_about(desk, message) == [("unknown_outcome", "done")]
    desk.deliver()
    assert payments(desk) == [(48_000, 48_000, True)]


@pytest.mark.usefixtures("books")
@pytest.mark.parametrize("case", ["it paid its invoice", "nothing was taken"])
def test_it_sends_nothing_back_that_is_owed_or_was_never_taken(desk: Desk, web: Any, case: str) -> None:
    message = desk.charge() if case == "it paid its invoice" else ended(desk, web, desk.charge())
    if case == "it paid its invoice":
        desk.deliver()

    said = done(desk, web, message, "refund") or ""

    assert said.startswith("not possible: ") and ("is paid with it" in said or "no money of it is there" in said)
    assert desk.one("SELECT count(*) AS number FROM public.billing_refund")["number"] == 0


@pytest.mark.usefixtures("books")
def test_what_a_person_has_put_right_by_hand_stays_so_until_a_person_takes_the_providers_word(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1")
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver_once()
    assert done(desk, web, message, "compensate") == "noted"
    intent = desk.provider.objects("payment_intent", message["uid"])[0]["id"]

    said = tell(desk, message, "payment_intent.succeeded", object_id=intent, status="succeeded")

    assert (said, desk.invoice(message)) == ("already rejected", "charge_failed")
    assert done(desk, web, message, "adopt") == "adopted: succeeded"
    assert (desk.invoice(message), payments(desk)) == ("paid", [(48_000, 0, False)])


@pytest.mark.usefixtures("books")
def test_a_refund_that_went_out_after_all_counts_again(desk: Desk, web: Any) -> None:
    message = ended(desk, web, desk.refund(desk.paid()))
    refund = moved(desk, message)

    assert tell(desk, message, "refund.created", object_id=refund, status="succeeded") == "settled: succeeded"

    assert (desk.refund_status(message), payments(desk)) == ("confirmed", [(48_000, 10_000, False)])


@pytest.mark.usefixtures("books")
def test_a_refund_that_went_out_after_all_waits_until_another_that_holds_its_amount_is_refused(desk: Desk, web: Any) -> None:
    invoice = desk.paid()
    first = ended(desk, web, desk.refund(invoice, 48_000))
    moved(desk, first)
    second = desk.refund(invoice, 48_000)
    refund = desk.provider.objects("refund", first["uid"])[0]["id"]
    assert tell(desk, first, "refund.created", object_id=refund, status="succeeded") is None

    desk.deliver()
    assert desk.refund_status(second) == "refused"
    desk.owner.execute("UPDATE public.outbox_webhook_event SET received_at = now() - interval '1 hour'")
    webhooks.process_due(desk.pool, go_on=lambda: True)

    assert (desk.refund_status(first), payments(desk)) == ("confirmed", [(48_000, 48_000, False)])


@pytest.mark.usefixtures("books")
def test_a_refund_that_fails_a_day_after_its_success_and_is_told_of_twice_is_reversed_once(desk: Desk, web: Any) -> None:
    desk.card("pm_card_refundFail")
    message = desk.refund(desk.paid())
    desk.deliver()
    refund = desk.read(message)["provider_id"]
    desk.provider.advance(24)
    kinds = ("refund.updated", "refund.failed", "charge.refund.updated", "refund.failed")

    said = [
        tell(desk, message, kind, object_id=refund, status="failed", event=f"evt_{number}") for number, kind in enumerate(kinds)
    ]

    assert said[0] == "taken back: failed" and set(said[1:]) <= {"already succeeded", "same as evt_0"}
    assert desk.read(message)["state"] == "succeeded"
    assert (desk.refund_status(message), payments(desk)) == ("reversed", [(48_000, 0, False)])
    assert asked_about(desk, message) == [("dirty_state", "open")]
    again = desk.refund(message["payload"]["invoice_id"])
    desk.deliver()
    assert desk.read(again)["state"] == "succeeded"


@pytest.mark.usefixtures("books")
def test_a_look_finds_a_refund_that_failed_later_where_no_event_comes(desk: Desk, web: Any) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")

    assert done(desk, web, message, "look_up") == "settled: taken back, failed"

    assert (desk.refund_status(message), desk.read(message)["seen"]["status"]) == ("reversed", "failed")
    assert carry_out(desk) == 0
    assert done(desk, web, message, "look_up") == "nothing new: the provider says failed"
    assert asked_about(desk, message) == [("dirty_state", "open")]


@pytest.mark.usefixtures("books")
def test_a_person_who_takes_it_over_is_not_asked_about_it_again(desk: Desk, web: Any) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")

    assert done(desk, web, message, "adopt") == "adopted: taken back, failed"

    assert (desk.refund_status(message), asked_about(desk, message)) == ("reversed", [])


@pytest.mark.usefixtures("books")
def test_a_refusal_that_turns_out_to_be_paid_answers_the_question_about_it(desk: Desk, web: Any) -> None:
    """Somebody has confirmed the declined intent with another card, in the provider's own pages."""
    desk.card("pm_card_visa_chargeDeclined")
    message = desk.charge()
    desk.deliver()
    intent = desk.read(message)["provider_id"]
    assert asked_about(desk, message) == [("rejected_payment", "open")]
    desk.card("pm_card_visa")
    customer = message["steps"][0]["params"]["customer"]
    other = desk.provider.create("/v1/payment_methods/pm_card_visa/attach", customer=customer)
    desk.provider.create(f"/v1/payment_intents/{intent}/confirm", payment_method=other["id"])

    assert tell(desk, message, "payment_intent.succeeded", object_id=intent, status="succeeded") == "settled: succeeded"

    assert (desk.invoice(message), asked_about(desk, message)) == ("paid", [("rejected_payment", "done")])


@pytest.mark.usefixtures("books")
def test_money_that_came_back_on_its_way_to_its_owner_can_be_sent_again(desk: Desk, web: Any) -> None:
    message = ended(desk, web, desk.charge())
    void(desk, message)
    moved(desk, message)
    done(desk, web, message, "refund")
    desk.deliver()
    refund = desk.one("SELECT * FROM public.outbox_message WHERE topic = 'payment.refund'")
    desk.provider.settle(refund["provider_id"], "failed")
    assert tell(desk, refund, "refund.failed", object_id=refund["provider_id"], status="failed") == "taken back: failed"
    assert payments(desk) == [(48_000, 0, True)]

    assert (done(desk, web, message, "refund") or "").endswith("of €480.00 is queued")

    desk.deliver()
    assert payments(desk) == [(48_000, 48_000, True)]
    statuses = desk.owner.execute("SELECT status FROM public.billing_refund ORDER BY id").fetchall()
    assert statuses == [("reversed",), ("confirmed",)]
