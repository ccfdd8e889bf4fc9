"""What the control API lists and changes for a person who looks: pages, sums, what is under way, one fault, a second event."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox, running

NOBODY = "http://127.0.0.1:9/"  # nothing listens there: what is promised waits


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox without anybody else's objects in it."""
    with running(tmp_path / "data", webhook_url=NOBODY) as sandbox:
        sandbox.control("webhooks", {"action": "pause"})
        yield sandbox


def test_objects_are_listed_newest_first_a_page_at_a_time(own: Sandbox) -> None:
    shop = Shop(own.client())
    made = [shop.create().id for _ in range(3)]
    first = own.control("objects?kind=payment_intent&limit=2")
    assert [one["body"]["id"] for one in first["objects"]] == made[:0:-1]
    last = own.control(f"objects?kind=payment_intent&limit=2&before={first['next']}")
    assert ([one["body"]["id"] for one in last["objects"]], last["next"]) == (made[:1], None)
    kinds = {one["kind"] for one in own.control("objects?kind=customer,refund&limit=9")["objects"]}
    assert kinds == {"customer"}
    assert own.control(f"objects?id={shop.customer}")["objects"][0]["kind"] == "customer"
    assert own.control("objects?id=cus_none")["objects"] == []
    for wrong in ("limit=0", "limit=1000", "limit=x", "limit=1&before=x"):
        with pytest.raises(AssertionError, match="whole number"):
            own.control(f"objects?{wrong}")


def test_money_is_listed_and_summed_per_currency(own: Sandbox) -> None:
    shop = Shop(own.client())
    intent = shop.charge("pm_card_refundFail")
    shop.charge(currency="usd")
    shop.refund(intent, amount=400)
    own.advance(61)
    newest = own.control("money?limit=1")
    assert ([line["kind"] for line in newest["movements"]], newest["next"]) == (["refund_failed"], 4)
    sums = {line.pop("currency"): line for line in own.control("sums")["sums"]}
    assert sums == {
        "eur": {"movements": 3, "balance": 1000, "charged": 1000, "refunded": -400, "returned": 400},
        "usd": {"movements": 1, "balance": 1000, "charged": 1000, "refunded": 0, "returned": 0},
    }


def test_it_lists_what_is_under_way_and_what_can_become_of_it(own: Sandbox) -> None:
    shop = Shop(own.client())
    pending = shop.refund(shop.charge("pm_card_pendingRefund"))
    stays = shop.charge("pm_card_sandboxProcessingStays")
    lines = [(one["body"]["id"], one["becomes"], one["possible"]) for one in own.control("under_way")["under_way"]]
    assert lines == [
        (pending.id, "succeeded", ["succeeded", "failed", "canceled", "requires_action"]),
        (stays.id, None, ["succeeded", "failed"]),
    ]
    own.control("settle", {"id": stays.id, "status": "succeeded"})
    assert [one["body"]["id"] for one in own.control("under_way")["under_way"]] == [pending.id]


def test_one_fault_is_lifted_and_the_others_stay(own: Sandbox) -> None:
    first, second = own.fault("before", "429")["id"], own.fault("before", "500")["id"]
    assert [rule["id"] for rule in own.control(f"faults?id={first}", method="DELETE")["faults"]] == [second]
    assert own.control("faults", method="DELETE") == {"faults": []}


def test_deliveries_are_listed_and_their_manners_taken_back_one_by_one(own: Sandbox) -> None:
    customer = own.client().v1.customers.create({"name": "Ada"}).id
    (line,) = own.control("webhooks?limit=5")["deliveries"]
    assert (line["type"], line["object"], line["state"]) == ("customer.created", customer, "waiting")
    for wish in ({"action": "delay", "seconds": 9}, {"action": "drop", "count": 2}, {"action": "reorder"}):
        own.control("webhooks", wish)
    for wish in ({"action": "delay", "seconds": 0}, {"action": "drop", "count": 0}, {"action": "in_order"}):
        manners = own.control("webhooks", wish)
    assert manners == {"paused": True, "delay": 0, "copies": 1, "newest_first": False, "drop": 0}


def test_a_second_event_about_the_same_change_has_an_id_of_its_own(own: Sandbox) -> None:
    customer = own.client("acct_connected").v1.customers.create({"name": "Ada"}).id
    (first,) = own.control("webhooks?limit=5")["deliveries"]
    own.control("webhooks", {"action": "twin", "event": first["event"]})
    second = own.control("webhooks?limit=5")["deliveries"][0]
    assert second["event"] != first["event"]
    assert (second["type"], second["object"]) == (first["type"], customer)
    with pytest.raises(AssertionError, match="no event evt_none"):
        own.control("webhooks", {"action": "twin", "event": "evt_none"})


def test_the_clock_says_how_far_it_is_ahead(own: Sandbox) -> None:
    own.advance(3600)
    assert own.control("clock")["ahead"] == 3600
