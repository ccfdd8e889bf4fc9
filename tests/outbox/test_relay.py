"""Delivering, against the provider's sandbox through its real SDK."""

from tests.outbox.desk import Desk


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
