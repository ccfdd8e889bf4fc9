"""What outlives kill -9: everything that was answered, and nothing of what was not."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox, running
from tests.waiting import until


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox that a test may kill."""
    with running(tmp_path / "data") as sandbox:
        yield sandbox


@pytest.fixture
def restart(own: Sandbox) -> Iterator[Any]:
    """Return a function that kills the sandbox and starts it on the same folder and port."""
    started: list[Sandbox] = []

    def again() -> Sandbox:
        (started[-1] if started else own).kill()
        started.append(own.again())
        return started[-1]

    yield again
    for sandbox in started:
        if not sandbox.ended():
            sandbox.stop()


def caught_in(own: Sandbox, when: str) -> tuple[stripe.PaymentIntent, Any]:
    """Leave a refund of one key hanging in a fault and return what it refunds."""
    shop = Shop(own.client())
    intent = shop.charge()
    own.fault(when, "sleep", path="/v1/refunds", seconds=60)
    pool = ThreadPoolExecutor(1)
    hanging = pool.submit(shop.refund, intent, amount=400, key="back")
    until(lambda: own.control("faults")["faults"][0]["struck"])
    pool.shutdown(wait=False)
    return intent, hanging


def refund_again(sandbox: Sandbox, intent: stripe.PaymentIntent) -> stripe.Refund:
    asked = {"payment_intent": intent.id, "amount": 400}
    return sandbox.client().v1.refunds.create(asked, {"idempotency_key": "back"})


def test_state_and_keys_outlive_kill_9(own: Sandbox, restart: Any) -> None:
    shop = Shop(own.client())
    intent = shop.confirm(shop.create(key="make"), key="pay")
    own.advance(1000)
    now = own.control("clock")["now"]
    back = restart()
    assert back.client().v1.payment_intents.retrieve(intent.id).status == "succeeded"
    again = back.client().v1.payment_intents.confirm(intent.id, {"off_session": True}, {"idempotency_key": "pay"})
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    assert len(back.control("money")["movements"]) == 1
    assert 0 <= back.control("clock")["now"] - now < 30


def test_a_crash_while_executing_leaves_no_claim_and_no_effect(own: Sandbox, restart: Any) -> None:
    intent, hanging = caught_in(own, "during")
    back = restart()
    with pytest.raises(stripe.APIConnectionError):
        hanging.result(10)
    assert [line["kind"] for line in back.control("money")["movements"]] == ["charge"]
    assert "Idempotent-Replayed" not in refund_again(back, intent).last_response.headers


def test_a_crash_before_the_answer_keeps_effect_and_answer(own: Sandbox, restart: Any) -> None:
    intent, hanging = caught_in(own, "after")
    back = restart()
    with pytest.raises(stripe.APIConnectionError):
        hanging.result(10)
    assert refund_again(back, intent).last_response.headers["Idempotent-Replayed"] == "true"
    assert [line["amount"] for line in back.control("money")["movements"]] == [1000, -400]


def test_kill_9_under_load_loses_nothing_that_was_answered(own: Sandbox, restart: Any) -> None:
    shop = Shop(own.client())
    answered: list[str] = []

    def charge(number: int) -> None:
        for _ in range(1000):
            try:
                answered.append(shop.charge().id)
            except stripe.APIConnectionError:
                return

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(charge, number) for number in range(4)]
        until(lambda: len(answered) > 40)
        back = restart()
        own.session.close()
    assert all(one.exception() is None for one in work)
    paid = {line["payment_intent"] for line in back.control("money")["movements"]}
    assert set(answered) <= paid
    succeeded = {one["id"] for one in back.control("objects?kind=payment_intent")["objects"] if one["status"] == "succeeded"}
    assert succeeded == paid


def test_kill_9_between_refunds_loses_no_answer_no_key_and_no_event(own: Sandbox, restart: Any) -> None:
    shop = Shop(own.client())
    intents = [shop.charge(metadata={"n": str(number)}) for number in range(4)]
    answered: dict[str, str] = {}

    def refund(number: int) -> None:
        for part in range(1000):
            key = f"refund:{number}:{part}"
            try:
                answered[key] = shop.refund(intents[number], amount=1, key=key).id
            except stripe.APIConnectionError:
                return

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(refund, number) for number in range(4)]
        until(lambda: len(answered) > 40)
        back = restart()
        own.session.close()
    assert all(one.exception() is None for one in work)
    again = Shop(back.client())
    for key, refund_id in list(answered.items())[-20:]:
        repeated = again.refund(intents[int(key.split(":")[1])], amount=1, key=key)
        assert (repeated.id, repeated.last_response.headers["Idempotent-Replayed"]) == (refund_id, "true")
    agrees(back, answered)


def agrees(back: Sandbox, answered: dict[str, str]) -> None:
    """See that objects, money, the charges' own sums and events tell the same, and nothing that was answered is missing."""
    movements = [line for line in back.control("money")["movements"] if line["kind"] == "refund"]
    objects = {one["id"]: one for one in back.control("objects?kind=refund")["objects"]}
    told = {
        one["data"]["object"]["id"] for one in back.control("objects?kind=event")["objects"] if one["type"] == "refund.created"
    }
    assert set(answered.values()) <= set(objects) == told == {line["object"] for line in movements}
    assert len(movements) == len(objects)
    assert {key: line["object"] for line in movements if (key := line["idempotency_key"]) in answered} == answered
    for charge in back.control("objects?kind=charge")["objects"]:
        assert charge["amount_refunded"] == sum(one["amount"] for one in objects.values() if one["charge"] == charge["id"])


def test_what_was_scheduled_happens_after_a_crash(own: Sandbox, restart: Any) -> None:
    shop = Shop(own.client())
    refund = shop.refund(shop.charge("pm_card_pendingRefund"))
    back = restart()
    back.advance(61)
    assert back.client().v1.refunds.retrieve(refund.id).status == "succeeded"


def test_it_ends_at_once_when_asked(own: Sandbox) -> None:
    Shop(own.client())
    assert own.stop() == 0


def test_a_state_that_cannot_be_written_is_a_500_that_is_not_saved(own: Sandbox) -> None:
    shop = Shop(own.client())
    other = sqlite3.connect(own.data / "stripe.sqlite3", isolation_level=None)
    other.execute("CREATE TRIGGER full BEFORE INSERT ON idempotency_key BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(stripe.APIError) as failed:
        shop.create(key="make")
    assert failed.value.http_status == 500
    other.execute("DROP TRIGGER full")
    other.close()
    assert "Idempotent-Replayed" not in shop.create(key="make").last_response.headers
    assert len(shop.v1.payment_intents.list().data) == 1


def test_the_money_log_cannot_be_changed(own: Sandbox) -> None:
    Shop(own.client()).charge()
    other = sqlite3.connect(own.data / "stripe.sqlite3")
    for statement in ("UPDATE movement SET amount = 0", "DELETE FROM movement"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
    other.close()
