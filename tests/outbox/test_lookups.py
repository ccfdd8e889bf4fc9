"""Finding a message's object among others."""

from typing import Any

import pytest

from outbox import gateway, lookups
from outbox.lookups import Finding
from outbox.outcomes import Answer
from tests.outbox.desk import Desk


@pytest.fixture
def message(desk: Desk) -> dict[str, Any]:
    """Return a charge whose create may or may not have arrived."""
    made = desk.charge(48_000)
    desk.put(made, "uncertain")
    return desk.read(made)


def find(message: dict[str, Any], **more: Any) -> Finding:
    return lookups.find(gateway.get, message=message, **more)


def create(desk: Desk, message: dict[str, Any], **changes: Any) -> dict[str, Any]:
    asked = message["steps"][0]["params"]
    params = {
        "amount": asked["amount"],
        "currency": asked["currency"],
        "customer": asked["customer"],
        "payment_method": asked["payment_method"],
        "automatic_payment_methods[enabled]": "true",
        "automatic_payment_methods[allow_redirects]": "never",
        "metadata[backstop_uid]": str(message["uid"]),
    }
    return desk.provider.create("/v1/payment_intents", **(params | changes))


def test_it_finds_nothing_where_nothing_is(message: dict[str, Any]) -> None:
    assert find(message).kind == "absent"


def test_it_reads_every_page(desk: Desk, message: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ours = create(desk, message)
    for _ in range(5):
        create(desk, message, **{"metadata[backstop_uid]": "another"})
    monkeypatch.setattr(lookups, "PAGE", 2)

    finding = find(message)

    assert (finding.kind, finding.outcome.provider_id) == ("unsent", ours["id"])


def test_it_takes_only_what_carries_its_uid(desk: Desk, message: dict[str, Any]) -> None:
    create(desk, message, **{"metadata[backstop_uid]": "another"})

    assert find(message).kind == "absent"


@pytest.mark.parametrize("changes", [{"amount": 700}, {"currency": "usd"}])
def test_it_leaves_another_amount_to_a_person(desk: Desk, message: dict[str, Any], changes: dict[str, Any]) -> None:
    create(desk, message, **changes)

    finding = find(message)

    assert (finding.kind, finding.outcome.kind, finding.outcome.error) == ("known", "dead", "not what was asked for")


def test_it_leaves_two_objects_of_one_message_to_a_person(desk: Desk, message: dict[str, Any]) -> None:
    create(desk, message)
    create(desk, message)

    finding = find(message)

    assert (finding.outcome.kind, finding.outcome.error) == ("dead", "2 objects carry its uid")


def test_it_asks_for_a_known_id_and_no_other(desk: Desk, message: dict[str, Any]) -> None:
    create(desk, message)
    second = create(desk, message)

    finding = find(message, provider_id=second["id"])

    assert (finding.kind, finding.outcome.provider_id) == ("unsent", second["id"])


def test_it_leaves_an_id_that_the_provider_does_not_know_to_a_person(message: dict[str, Any]) -> None:
    finding = find(message, provider_id="pi_unknown")

    assert (finding.outcome.kind, finding.outcome.error) == ("dead", "the look-up was refused: 404 resource_missing")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(failure="ConnectionError"), "retry"),
        (Answer(failure="NewConnectionError", sent=False), "retry"),
        (Answer(status=500, body={}), "retry"),
        (Answer(status=200), "retry"),
        (Answer(status=429, body={}, retry_after=3.0), "retry"),
        (Answer(status=401, body={}), "park"),
        (Answer(status=403, body={}), "park"),
    ],
)
def test_it_learns_nothing_from_a_failure(message: dict[str, Any], answer: Answer, kind: str) -> None:
    finding = lookups.find(lambda path, params: answer, message=message)

    assert (finding.kind, finding.outcome.kind, finding.outcome.retry_after) == ("unanswered", kind, answer.retry_after)


def test_it_puts_a_message_back_when_a_look_up_is_not_answered(desk: Desk, message: dict[str, Any]) -> None:
    desk.provider.fault("before", "500", method="GET", path="/v1/payment_intents")

    desk.deliver_once()

    after = desk.read(message)
    assert (after["state"], after["ever_unknown"], after["sends"]) == ("uncertain", True, 0)
    assert desk.deliveries(message) == [("lookup", "unanswered")]


def test_it_says_that_an_answer_could_not_be_read(message: dict[str, Any]) -> None:
    finding = lookups.find(lambda path, params: Answer(status=200), message=message)
    assert (finding.kind, finding.outcome.error) == ("unanswered", "200 unreadable")


def test_it_believes_no_refusal_before_an_unanswered_look_up(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.owner.execute("UPDATE public.outbox_message SET ever_unknown = true WHERE id = %s", (message["id"],))
    payment = message["payload"]["provider_payment_id"]
    desk.provider.create("/v1/refunds", payment_intent=payment)
    desk.provider.fault("before", "500", method="GET", path="/v1/refunds")

    desk.deliver_once()

    assert (desk.read(message)["state"], desk.refund_status(message)) == ("uncertain", "queued")
    desk.deliver_all(message)
    assert (desk.read(message)["state"], desk.refund_status(message)) == ("rejected", "refused")


def test_it_gives_up_a_lost_lease_in_the_middle_of_a_look_up(desk: Desk, message: dict[str, Any]) -> None:
    claimed = desk.claim()
    assert claimed
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() WHERE id = %s", (message["id"],))

    desk.work(claimed)

    assert desk.read(message)["state"] == "leased"
    assert desk.deliveries(message) == []
