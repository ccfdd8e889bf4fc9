"""One transaction: the state, the evidence and the effect on the books; and what a person is told."""

from typing import Any

import pytest

from ledger import wiring
from outbox import settling
from outbox.leases import LeaseLost
from outbox.outcomes import Outcome
from outbox.settling import given_up
from tests.outbox.desk import Desk

CONFIRM = "/v1/payment_intents/[^/]+/confirm"


@pytest.fixture
def tellers(settings: Any) -> Any:
    """Let a test say who is told of a settled message."""

    def choose(*paths: str) -> None:
        settings.BACKSTOP_ON_SETTLED = list(paths)
        wiring.plugged_all.cache_clear()

    yield choose
    wiring.plugged_all.cache_clear()


def broken(conn: Any, *, message: Any, outcome: Any) -> None:
    raise RuntimeError("telling failed")


def test_it_refunds_and_confirms(desk: Desk) -> None:
    invoice = desk.paid()
    message = desk.refund(invoice, 10_000)

    desk.deliver()

    assert (desk.read(message)["state"], desk.refund_status(message)) == ("succeeded", "confirmed")
    refund = desk.one("SELECT * FROM public.billing_refund WHERE id = %s", message["payload"]["refund_id"])
    assert refund["provider_refund_id"] == desk.read(message)["provider_id"]
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 10_000


def test_it_names_the_message_in_every_change_of_the_books(desk: Desk) -> None:
    message = desk.charge()
    desk.deliver()

    rows = desk.owner.execute(
        "SELECT table_name, operation, login FROM public.ledger_row_change WHERE message_id = %s ORDER BY id", (message["id"],)
    ).fetchall()
    assert rows == [
        ("billing_payment", "INSERT", "backstop_outbox"),
        ("billing_invoice", "UPDATE", "backstop_outbox"),
    ]


def test_it_tells_a_person_of_a_refused_payment_once(desk: Desk) -> None:
    desk.card("pm_card_visa_chargeDeclinedInsufficientFunds")
    message = desk.charge()
    desk.deliver()

    found = desk.one("SELECT * FROM public.escalations_escalation WHERE object = %s", f"message:{message['id']}")
    assert (found["kind"], found["subject"]) == ("rejected_payment", desk.customer)


def test_it_charges_again_after_a_decline_with_a_new_intent(desk: Desk) -> None:
    desk.card("pm_card_visa_chargeDeclinedInsufficientFunds")
    first = desk.charge()
    desk.deliver()
    desk.card("pm_card_visa")

    second = desk.charge_again(first["payload"]["invoice_id"])
    desk.deliver()

    assert [desk.read(message)["state"] for message in (first, second)] == ["rejected", "succeeded"]
    assert desk.invoice(first) == "paid"
    assert desk.provider.movements(second["uid"]) == [48_000]


def test_it_waits_for_what_the_provider_has_not_finished(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()

    desk.deliver()

    waiting = desk.read(message)
    assert (waiting["state"], waiting["provider_status"], desk.invoice(message)) == ("accepted", "processing", "charge_queued")
    assert 3500 < (waiting["next_attempt_at"] - waiting["first_sent_at"]).total_seconds() < 3700
    desk.due(message)
    desk.deliver()
    assert (desk.read(message)["state"], desk.read(message)["attempts"]) == ("accepted", 1)

    desk.provider.settle(waiting["provider_id"], "succeeded")
    desk.due(message)
    desk.deliver()
    assert (desk.read(message)["outcome_source"], desk.invoice(message)) == ("lookup", "paid")


def test_it_learns_that_a_debit_bounced(desk: Desk) -> None:
    desk.card("pm_usBankAccount_processing")
    message = desk.charge()
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")
    desk.due(message)

    desk.deliver()

    assert (desk.read(message)["state"], desk.invoice(message)) == ("rejected", "charge_failed")


def test_it_gives_a_failed_refund_back_to_what_may_be_refunded(desk: Desk) -> None:
    desk.card("pm_card_pendingRefund")
    message = desk.refund(desk.paid(), 10_000)
    desk.deliver()
    assert desk.read(message)["state"] == "accepted"

    desk.provider.settle(desk.read(message)["provider_id"], "failed")
    desk.due(message)
    desk.deliver()

    assert (desk.read(message)["state"], desk.refund_status(message)) == ("rejected", "refused")
    assert desk.one("SELECT refunded_minor FROM public.billing_payment")["refunded_minor"] == 0


def test_it_saves_nothing_when_the_effect_on_the_books_fails(desk: Desk) -> None:
    message = desk.charge()
    desk.unsettle(message)

    desk.deliver_once()

    aside = desk.read(message)
    assert (aside["state"], aside["last_error"]) == ("uncertain", "settling failed: BooksDisagree")
    assert aside["provider_id"]
    assert desk.owner.execute("SELECT count(*) FROM public.billing_payment").fetchone() == (0,)

    desk.unsettle(message, lost=False)
    desk.deliver_all(message)
    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]


def test_it_ends_with_a_person_when_the_effect_keeps_failing(desk: Desk) -> None:
    message = desk.charge()
    desk.unsettle(message)
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1")

    desk.deliver_once()

    assert desk.read(message)["state"] == "dead"
    assert desk.one("SELECT kind FROM public.escalations_escalation WHERE object = %s", f"message:{message['id']}")


def test_it_is_not_held_up_by_whoever_cannot_be_told(desk: Desk, tellers: Any) -> None:
    tellers("tests.outbox.test_settling.broken")
    message = desk.charge()
    desk.deliver_once()
    assert desk.read(message)["last_error"] == "settling failed: RuntimeError"

    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 2")
    desk.due(message)
    desk.deliver_once()
    assert desk.read(message)["state"] == "dead"

    tellers("escalations.settled.open_if_needed")


def message_of(**changes: Any) -> dict[str, Any]:
    made = {"attempts": 3, "max_attempts": 12, "too_old": False, "repeat": "keyed", "claimed_from": "ready"}
    return made | changes


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("retry", {}, "retry"),
        ("retry", {"attempts": 12}, "dead"),
        ("uncertain", {"too_old": True}, "dead"),
        ("uncertain", {"repeat": "never"}, "dead"),
        ("retry", {"repeat": "never"}, "retry"),
        ("succeeded", {"attempts": 12, "too_old": True, "repeat": "never"}, "succeeded"),
        ("accepted", {"too_old": True}, "accepted"),
        ("accepted", {"too_old": True, "claimed_from": "accepted"}, "dead"),
        ("park", {"attempts": 12, "too_old": True}, "park"),
    ],
)
def test_it_gives_up(kind: Any, changes: dict[str, Any], expected: str) -> None:
    assert given_up(message_of(**changes), Outcome(kind=kind)).kind == expected


def test_it_buries_a_message_that_kills_its_workers(desk: Desk) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET attempts = max_attempts")

    desk.deliver_once()

    assert (desk.read(message)["state"], desk.read(message)["sends"]) == ("dead", 0)


def test_it_never_repeats_what_may_not_be_repeated(desk: Desk) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET repeat = 'never'")
    desk.provider.fault("after", "drop", path="/v1/payment_intents")

    desk.deliver_once()

    after = desk.read(message)
    assert (after["state"], after["compensation_needed"]) == ("dead", True)


def test_it_does_not_repeat_what_may_not_be_repeated_after_a_crash(desk: Desk) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET repeat = 'never'")
    desk.put(message, "uncertain")

    desk.deliver_once()

    after = desk.read(message)
    assert (after["state"], after["compensation_needed"], after["sends"]) == ("dead", True, 0)


@pytest.mark.parametrize(("kind", "invoice"), [("succeeded", "paid"), ("rejected", "charge_failed")])
def test_it_adopts_the_providers_word_in_any_state_that_is_not_final(desk: Desk, kind: Any, invoice: str) -> None:
    for state in ("ready", "leased", "accepted", "uncertain", "dead"):
        message = desk.charge()
        desk.put(message, state)

        with desk.pool.connection() as conn:
            outcome = Outcome(kind=kind, provider_id=f"pi_{state}")
            after = settling.adopt(conn, message=desk.read(message), outcome=outcome, source="webhook")

        assert after and (after["state"], after["lease_token"]) == (kind, None), state
        assert desk.invoice(message) == invoice, state


@pytest.mark.parametrize("kind", ["succeeded", "rejected"])
def test_it_never_changes_what_is_final(desk: Desk, kind: Any) -> None:
    for state in ("succeeded", "rejected", "cancelled"):
        message = desk.charge()
        desk.put(message, state)
        before = desk.read(message)

        with desk.pool.connection() as conn:
            outcome = Outcome(kind=kind, provider_id=f"pi_{state}")
            assert settling.adopt(conn, message=before, outcome=outcome, source="webhook") is None

        assert desk.read(message) == before
        assert desk.invoice(message) == "charge_queued"


def test_it_loses_its_lease_to_the_providers_word(desk: Desk) -> None:
    desk.charge()
    claimed = desk.claim()
    assert claimed
    with desk.pool.connection() as conn:
        settling.adopt(conn, message=claimed, outcome=Outcome(kind="succeeded", provider_id="pi_1"), source="webhook")
        with pytest.raises(LeaseLost):
            settling.settle(conn, message=claimed, outcome=Outcome(kind="rejected"), source="response")
    assert desk.invoice(claimed) == "paid"
