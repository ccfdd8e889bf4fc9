"""Events and their deliveries: signed, at least once, and late, twice, reordered or lost on request."""

import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import SECRET, Sandbox, running
from tests.waiting import until


class Receiver(ThreadingHTTPServer):
    """An application's webhook address: it keeps what arrives and answers what it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Inbox)
        self.arrived: queue.Queue[tuple[bytes, str]] = queue.Queue()
        self.answers: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/webhooks/stripe"

    def next(self) -> stripe.Event:
        """Return the next event, its signature verified by Stripe's library."""
        body, signature = self.arrived.get(timeout=10)
        return stripe.Webhook.construct_event(body, signature, SECRET)

    def types(self, number: int) -> list[str]:
        """Return the types of the next events."""
        return [self.next().type for _ in range(number)]


class Inbox(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.send_header("Content-Length", "0")
        self.send_header("Location", self.server.url)
        self.server.arrived.put((body, self.headers["Stripe-Signature"]))  # before the answer: the next delivery follows it
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run a webhook address."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def own(tmp_path: Path, receiver: Receiver) -> Iterator[Sandbox]:
    """Run a sandbox that sends to the receiver."""
    with running(tmp_path / "data", webhook_url=receiver.url) as sandbox:
        yield sandbox


def customer(own: Sandbox, name: str = "Ada") -> str:
    return own.client().v1.customers.create({"name": name}).id


def test_every_change_is_an_event_signed_as_stripe_does(own: Sandbox, receiver: Receiver) -> None:
    shop = Shop(own.client())
    intent = shop.confirm(shop.create(), key="pay")
    events = [receiver.next() for _ in range(4)]
    assert [event.type for event in events] == [
        "customer.created",
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.succeeded",
    ]
    paid = events[-1]
    assert (paid.data.object.id, paid.data.object.status, paid.livemode) == (intent.id, "succeeded", False)
    assert (paid.request.id, paid.request.idempotency_key) == (intent.last_response.request_id, "pay")
    shop.refund(intent)
    assert receiver.types(2) == ["refund.created", "charge.refunded"]


def test_a_wrong_secret_or_a_changed_body_is_noticed(own: Sandbox, receiver: Receiver) -> None:
    customer(own)
    body, signature = receiver.arrived.get(timeout=10)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(body, signature, "whsec_another")
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(body.replace(b"Ada", b"Eve"), signature, SECRET)


def test_signatures_carry_the_real_time_whatever_the_sandbox_clock_says(own: Sandbox, receiver: Receiver) -> None:
    own.advance(30 * 60 * 60)
    customer(own)
    assert receiver.next().type == "customer.created"


def test_late_ends_are_events_without_a_request(own: Sandbox, receiver: Receiver) -> None:
    shop = Shop(own.client())
    refund = shop.refund(shop.charge("pm_card_refundFail"))
    receiver.types(6)
    own.advance(61)
    found = [receiver.next() for _ in range(3)]
    assert [event.type for event in found] == ["refund.updated", "charge.refund.updated", "refund.failed"]
    assert {(event.data.object.id, event.data.object.status) for event in found} == {(refund.id, "failed")}
    failed = found[-1]
    assert (failed.request.id, failed.request.idempotency_key) == (None, None)


def test_events_can_be_listed_and_found_by_key(own: Sandbox, receiver: Receiver) -> None:
    shop = Shop(own.client())
    intent = shop.confirm(shop.create(), key="pay")
    found = shop.v1.events.list({"types": ["payment_intent.succeeded", "payment_intent.payment_failed"]}).data
    assert [(event.data.object.id, event.request.idempotency_key) for event in found] == [(intent.id, "pay")]
    assert shop.v1.events.retrieve(found[0].id).type == "payment_intent.succeeded"
    assert len(shop.v1.events.list({"type": "customer.created"}).data) == 1
    group = [event.type for event in shop.v1.events.list({"type": "payment_intent.*"}).data]
    assert group == ["payment_intent.succeeded", "payment_intent.created"]
    own.advance(31 * 24 * 60 * 60)
    assert shop.v1.events.list().data == []


def test_a_delivery_that_fails_is_repeated_with_a_new_signature(own: Sandbox, receiver: Receiver) -> None:
    receiver.answers = [500, 302]
    customer(own)
    first, second, third = (receiver.arrived.get(timeout=10) for _ in range(3))
    assert first[0] == second[0] == third[0]
    events = own.client().v1.events
    until(lambda: len(events.list({"delivery_success": True}).data) == 1)
    assert events.list({"delivery_success": False}).data == []
    assert own.control("webhooks")["deliveries"][0]["attempts"] == 3


def test_it_gives_up_after_three_days(own: Sandbox, receiver: Receiver) -> None:
    receiver.answers = [500] * 20
    customer(own)

    def attempts() -> int:
        return int(own.control("webhooks")["deliveries"][0]["attempts"])

    for number in range(1, 12):
        until(lambda number=number: attempts() == number)
        own.advance(24 * 60 * 60)
    until(lambda: own.control("webhooks")["deliveries"][0]["state"] == "given_up")
    assert (receiver.arrived.qsize(), len(own.client().v1.events.list({"delivery_success": False}).data)) == (12, 1)


def test_promised_deliveries_outlive_kill_9(own: Sandbox, receiver: Receiver) -> None:
    own.control("webhooks", {"action": "pause"})
    customer(own)
    own.kill()
    assert receiver.arrived.empty()
    back = own.again()
    assert receiver.next().type == "customer.created"
    assert back.stop() == 0


def test_paused_and_reordered(own: Sandbox, receiver: Receiver) -> None:
    own.control("webhooks", {"action": "pause"})
    shop = Shop(own.client())
    shop.create()
    own.control("webhooks", {"action": "reorder"})
    assert receiver.arrived.empty()
    own.control("webhooks", {"action": "resume"})
    assert receiver.types(2) == ["payment_intent.created", "customer.created"]


def test_duplicated(own: Sandbox, receiver: Receiver) -> None:
    own.control("webhooks", {"action": "duplicate", "copies": 2})
    customer(own)
    assert receiver.next().id == receiver.next().id


def test_dropped_and_sent_again(own: Sandbox, receiver: Receiver) -> None:
    own.control("webhooks", {"action": "drop", "count": 1})
    lost = customer(own, "lost")
    customer(own, "found")
    assert receiver.next().data.object.name == "found"
    undelivered = own.client().v1.events.list
    until(lambda: len(undelivered({"delivery_success": False}).data) == 1, what="the answer to the one that arrived")
    (event,) = undelivered({"delivery_success": False}).data
    assert event.data.object.id == lost
    own.control("webhooks", {"action": "resend", "event": event.id})
    assert receiver.next().id == event.id


def test_a_second_event_tells_the_same_with_another_id(own: Sandbox, receiver: Receiver) -> None:
    customer(own)
    first = receiver.next()
    own.control("webhooks", {"action": "twin", "event": first.id})
    second = receiver.next()
    assert second.id != first.id
    assert (second.type, second.created, second.data.object.id) == (first.type, first.created, first.data.object.id)


def test_forged_ones_are_sent_once_and_are_what_the_library_refuses(own: Sandbox, receiver: Receiver) -> None:
    customer(own)
    event = receiver.next()
    for how in ("secret", "changed", "old"):
        receiver.answers = [400]
        assert own.control("webhooks", {"action": "forge", "event": event.id, "how": how}) == {"status": 400}
        with pytest.raises(stripe.SignatureVerificationError):
            receiver.next()
    own.control("webhooks", {"action": "forge", "event": event.id, "how": "livemode"})
    assert receiver.next().livemode is True
    own.control("webhooks", {"action": "forge", "event": event.id, "how": "future"})
    _, signature = receiver.arrived.get(timeout=10)
    assert int(signature.split(",")[0].removeprefix("t=")) > event.created + 3000
    assert [line["attempts"] for line in own.control("webhooks")["deliveries"]] == [1]
    with pytest.raises(AssertionError, match="`how` is one of"):
        own.control("webhooks", {"action": "forge", "event": event.id})


def test_delayed_until_the_clock_says_so(own: Sandbox, receiver: Receiver) -> None:
    own.control("webhooks", {"action": "delay", "seconds": 3600})
    customer(own, "late")
    assert own.control("webhooks")["delay"] == 3600
    assert receiver.arrived.empty()
    own.advance(3600)
    assert receiver.next().data.object.name == "late"
    assert own.control("webhooks", {"action": "normal"})["delay"] == 0


def test_another_account_is_named(own: Sandbox, receiver: Receiver) -> None:
    own.client("acct_connected").v1.customers.create({})
    assert receiver.next().account == "acct_connected"
