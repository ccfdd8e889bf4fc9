"""Events that are signed but odd: each is kept, answered 200 and passed over, whatever a field of it holds."""

import json
from typing import Any

import pytest

from outbox import webhooks
from tests.outbox.desk import Desk
from tests.outbox.events import SECRET, event_of, send

ODD: list[Any] = [None, 7, True, 1.5, "text", [], [1], {}, {"nested": None}]


@pytest.fixture(autouse=True)
def _secrets(settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRETS, settings.STRIPE_MODE = [SECRET], "test"


def outcome_of(desk: Desk, event: dict[str, Any]) -> str | None:
    """Send a correctly signed event, process what is due, and return what became of it."""
    assert send(json.dumps(event)).status_code == 200
    webhooks.process_due(desk.pool, go_on=lambda: True)
    row = desk.one("SELECT outcome, attempts FROM public.outbox_webhook_event WHERE event_id = %s", event["id"])
    assert row["attempts"] == 1
    found: str | None = row["outcome"]
    return found


@pytest.mark.parametrize(
    "about", [*ODD, {"id": {}}, {"id": ""}, {"id": "i" * 300}, {"id": "../customers"}, {"id": "pi 1\n"}], ids=repr
)
def test_it_keeps_an_event_about_no_object_that_it_knows(desk: Desk, about: Any) -> None:
    assert outcome_of(desk, event_of(data={"object": about})) == "not ours"


@pytest.mark.parametrize("data", ODD, ids=repr)
def test_it_keeps_an_event_without_an_object(desk: Desk, data: Any) -> None:
    assert outcome_of(desk, event_of(data=data)) == "not ours"


@pytest.mark.parametrize("metadata", ODD, ids=repr)
def test_an_object_with_odd_metadata_is_not_ours(desk: Desk, metadata: Any) -> None:
    about = {"id": "pi_foreign", "metadata": metadata}

    assert outcome_of(desk, event_of(data={"object": about})) == "not ours"


@pytest.mark.parametrize("uid", [False, 0, *ODD[1:]], ids=repr)
def test_an_object_with_an_odd_uid_is_not_ours_even_if_a_message_knows_its_id(desk: Desk, uid: Any) -> None:
    message = desk.charge()
    desk.deliver()
    about = {"id": desk.read(message)["provider_id"], "metadata": {"backstop_uid": uid}}

    assert outcome_of(desk, event_of(data={"object": about})) == "not ours"


@pytest.mark.parametrize("account", ["acct_other", *filter(None, ODD)], ids=repr)
def test_an_event_of_another_account_is_not_about_a_message_of_ours(desk: Desk, account: Any) -> None:
    message = desk.charge()
    about = {"id": "pi_1", "metadata": {"backstop_uid": str(message["uid"])}}

    assert outcome_of(desk, event_of(account=account, data={"object": about})) == "another account"


@pytest.mark.parametrize("field", ["amount", "currency", "status", "object", "customer", "last_payment_error"])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_it_takes_nothing_but_names_from_an_event(desk: Desk, field: str, odd: Any) -> None:
    """What is settled comes from the provider's answer, so no other field can be wrong."""
    message = desk.charge()
    desk.deliver()
    before = desk.read(message)
    about = {"id": before["provider_id"], "metadata": {"backstop_uid": str(message["uid"])}, field: odd}

    assert outcome_of(desk, event_of(data={"object": about})) == "already succeeded"
    assert desk.read(message) == before
