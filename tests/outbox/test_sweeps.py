"""The provider's objects against our messages: each way in which they do not fit, and that what fits is not told of."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outbox import gateway, sweeps
from outbox.outcomes import Answer
from outbox.sweeps import Unanswered
from tests.outbox.desk import Desk


def sweep(desk: Desk) -> list[tuple[str, int | None]]:
    """Return what does not fit of the desk's customer: other tests leave objects at the provider, too."""
    with desk.pool.connection() as conn:
        found = list(sweeps.sweep(conn, gateway.get, since=datetime.now(UTC) - timedelta(hours=1)))
    mine = {str(row[0]) for row in desk.owner.execute("SELECT uid FROM public.outbox_message")}
    return [(stray.kind, stray.message) for stray in found if stray.uid in mine]


def again(desk: Desk, message: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Make another object with the message's uid, as a second copy of this instance would."""
    asked = message["steps"][0]["params"]
    params = {name: asked[name] for name in ("amount", "currency", "customer", "payment_method")}
    more = {
        "automatic_payment_methods[enabled]": "true",
        "automatic_payment_methods[allow_redirects]": "never",
        "metadata[backstop_uid]": str(message["uid"]),
    }
    return desk.provider.create("/v1/payment_intents", **(params | more | changes))


def test_it_finds_nothing_where_all_fits(desk: Desk) -> None:
    desk.refund(desk.paid())
    desk.card("pm_card_visa_chargeDeclined")
    desk.charge()
    desk.deliver()

    assert sweep(desk) == []


def test_it_finds_an_object_whose_message_is_gone(desk: Desk) -> None:
    message = desk.charge()
    made = again(desk, message | {"uid": "11111111-1111-4111-8111-111111111111"})

    with desk.pool.connection() as conn:
        found = list(sweeps.sweep(conn, gateway.get, since=datetime.now(UTC) - timedelta(hours=1)))

    [stray] = [stray for stray in found if stray.object_id == made["id"]]
    assert (stray.kind, stray.message, stray.seen["amount"]) == ("no_message", None, 48_000)


def test_it_finds_a_success_without_an_object(desk: Desk) -> None:
    message = desk.charge()
    desk.put(message, "succeeded")
    desk.owner.execute("UPDATE public.outbox_message SET provider_id = 'pi_nowhere'")

    assert sweep(desk) == [("no_object", message["id"])]


@pytest.mark.parametrize("changes", [{"amount": 700}, {"currency": "usd"}])
def test_it_finds_another_amount(desk: Desk, changes: dict[str, Any]) -> None:
    message = desk.charge()
    again(desk, message, **changes)

    assert sweep(desk) == [("differs", message["id"])]


def test_it_finds_two_objects_of_one_message(desk: Desk) -> None:
    message = desk.charge()
    desk.deliver()
    second = again(desk, message)
    assert sweep(desk) == [("twice", message["id"])]

    desk.provider.create(f"/v1/payment_intents/{second['id']}/cancel")
    assert sweep(desk) == []


@pytest.mark.parametrize("state", ["rejected", "cancelled"])
def test_it_finds_money_that_moved_for_what_we_call_refused(desk: Desk, state: str) -> None:
    message = desk.charge()
    again(desk, message, confirm="true")
    desk.put(message, state)

    assert sweep(desk) == [("contradicts", message["id"])]


def test_it_hears_of_a_refund_that_failed_long_after_it_was_made(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    refund = desk.read(message)["provider_id"]
    desk.provider.advance(20 * 24)
    desk.provider.settle(refund, "failed")
    since = datetime.fromtimestamp(desk.provider.call("GET", "clock")["now"], UTC) - timedelta(hours=1)

    with desk.pool.connection() as conn:
        found = list(sweeps.sweep(conn, gateway.get, since=since))

    assert [(stray.kind, stray.message) for stray in found if stray.object_id == refund] == [("contradicts", message["id"])]


def test_it_leaves_alone_what_a_person_has_put_right_by_hand(desk: Desk) -> None:
    message = desk.charge()
    again(desk, message, confirm="true")
    desk.put(message, "rejected")
    desk.owner.execute("UPDATE public.outbox_message SET refusal = 'put_right_elsewhere'")

    assert sweep(desk) == []


def test_it_finds_a_refund_that_failed_later_until_the_books_know(desk: Desk) -> None:
    message = desk.refund(desk.paid())
    desk.deliver()
    desk.provider.settle(desk.read(message)["provider_id"], "failed")
    assert sweep(desk) == [("contradicts", message["id"])]

    desk.owner.execute("UPDATE public.outbox_message SET provider_status = 'failed' WHERE id = %s", (message["id"],))
    assert sweep(desk) == []


def test_it_reads_every_page(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    message = desk.charge()
    for _ in range(5):
        again(desk, message, amount=700)
    monkeypatch.setattr(sweeps, "PAGE", 2)

    assert [kind for kind, _ in sweep(desk)].count("differs") == 5


@pytest.mark.parametrize("answer", [Answer(failure="ConnectionError"), Answer(status=500, body={}), Answer(status=200)])
def test_it_concludes_nothing_when_the_provider_does_not_answer(desk: Desk, answer: Answer) -> None:
    with desk.pool.connection() as conn, pytest.raises(Unanswered):
        list(sweeps.sweep(conn, lambda path, params: answer, since=datetime.now(UTC)))
