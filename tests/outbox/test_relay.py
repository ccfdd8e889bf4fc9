"""Delivering, against the provider's sandbox through its real SDK."""

import threading
import uuid

from outbox import relay
from tests.outbox.desk import Desk
from tests.waiting import until


def test_it_charges_in_two_steps_and_pays_the_invoice(desk: Desk) -> None:
    message = desk.charge(48_000)

    assert desk.deliver() is False

    after = desk.read(message)
    assert (after["state"], after["outcome_source"], after["sends"], after["attempts"]) == ("succeeded", "response", 2, 1)
    assert after["provider_id"].startswith("pi_")
    assert desk.deliveries(message) == [("create", "advanced"), ("confirm", "succeeded")]
    assert desk.invoice(message) == "paid"
    payment = desk.one("SELECT * FROM public.billing_payment WHERE provider_payment_id = %s", after["provider_id"])
    assert (payment["amount_minor"], payment["currency"]) == (48_000, "EUR")
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_goes_on_after_a_message_that_nobody_foresaw(desk: Desk) -> None:
    broken, fine = desk.charge(), desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET steps = '[]' WHERE id = %s", (broken["id"],))

    assert desk.deliver() is False

    assert (desk.read(broken)["state"], desk.read(fine)["state"]) == ("leased", "succeeded")


def test_it_stops_between_two_messages(desk: Desk) -> None:
    first, second = desk.charge(), desk.charge()
    answers = iter([True, False])

    assert relay.drain(desk.pool, go_on=lambda: next(answers), wake=lambda: None) is True

    assert [desk.read(message)["state"] for message in (first, second)] == ["succeeded", "ready"]


def test_it_wakes_another_worker_once_there_is_something_to_do(desk: Desk) -> None:
    rung: list[int] = []
    relay.drain(desk.pool, go_on=lambda: True, wake=lambda: rung.append(1))
    assert rung == []

    desk.charge()
    desk.charge()
    relay.drain(desk.pool, go_on=lambda: True, wake=lambda: rung.append(1))

    assert rung == [1]


def test_it_holds_no_transaction_and_no_connection_during_a_call(desk: Desk) -> None:
    desk.charge()
    desk.provider.fault("during", "sleep", path="/v1/payment_intents", seconds=1)
    message = desk.claim()
    assert message
    worker = threading.Thread(target=desk.work, args=(message,))
    worker.start()
    until(lambda: desk.read(message)["sending_at"])

    busy = desk.one(
        "SELECT count(*) AS n FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename = 'backstop_outbox' AND state <> 'idle'"
    )
    held = desk.pool.get_stats()
    worker.join()

    assert busy["n"] == 0
    assert held["pool_available"] == held["pool_size"]


def test_it_tells_the_conversation_what_became_of_its_effect(desk: Desk) -> None:
    desk.card("pm_card_visa_chargeDeclinedInsufficientFunds")
    message = desk.charge()
    thread = uuid.uuid4()
    desk.owner.execute("INSERT INTO public.agent_thread (thread) VALUES (%s)", (thread,))
    desk.owner.execute("UPDATE public.outbox_message SET thread = %s", (thread,))

    desk.deliver()

    notice = desk.one("SELECT * FROM public.agent_notice WHERE thread = %s", thread)
    assert (notice["kind"], notice["object"]) == ("payment_rejected", f"message:{message['id']}")
    assert notice["text"].startswith("Charge €480.00 to the card ending in 4242")
    assert "refused (insufficient funds)" in notice["text"]
