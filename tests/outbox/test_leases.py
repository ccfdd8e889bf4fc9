"""Who has a message: claims that race, leases that run out, tokens that are gone."""

from typing import Any

import pytest
from psycopg import sql

from outbox import leases, settling
from outbox.endings import Delivery
from outbox.leases import LeaseLost
from outbox.outcomes import Outcome
from tests.outbox.desk import Desk

CONFIRM = "/v1/payment_intents/[^/]+/confirm"


@pytest.fixture
def other(connect: Any) -> Any:
    """Return a second connection as the outbox login."""
    return connect("outbox")


def expire(desk: Desk, message: dict[str, Any]) -> None:
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE id = %s", (message["id"],))


def test_it_gives_a_message_to_one_of_two_workers(desk: Desk, outbox: Any, other: Any) -> None:
    desk.charge()
    with outbox.transaction():
        first = leases.claim(outbox, owner="one")
        assert first and leases.claim(other, owner="two") is None

    assert leases.claim(other, owner="two") is None
    assert (first["lease_owner"], first["claimed_from"], first["attempts"]) == ("one", "ready", 1)


def test_it_gives_two_messages_to_two_workers(desk: Desk, outbox: Any, other: Any) -> None:
    one, two = desk.charge(), desk.charge()
    with outbox.transaction(), other.transaction():
        claimed = [leases.claim(conn, owner="x") for conn in (outbox, other)]

    assert [message and message["id"] for message in claimed] == [one["id"], two["id"]]


def test_it_sends_the_messages_of_one_aggregate_one_after_the_other(desk: Desk, outbox: Any) -> None:
    invoice = desk.paid()
    first, second = desk.refund_pair(invoice)

    assert [message["id"] for message in (leases.claim(outbox, owner="x"),) if message] == [first["id"]]
    assert leases.claim(outbox, owner="x") is None

    for state in ("accepted", "uncertain", "dead"):
        desk.put(first, state)
        desk.owner.execute(
            "UPDATE public.outbox_message SET next_attempt_at = now() + interval '1 h' WHERE id = %s", (first["id"],)
        )
        assert leases.claim(outbox, owner="x") is None, state

    desk.put(first, "rejected")
    claimed = leases.claim(outbox, owner="x")
    assert claimed and claimed["id"] == second["id"]


def test_it_leaves_a_message_alone_whose_time_has_not_come(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.owner.execute(
        "UPDATE public.outbox_message SET next_attempt_at = now() + interval '1 h' WHERE id = %s", (message["id"],)
    )

    assert leases.claim(outbox, owner="x") is None


def test_it_leaves_a_message_alone_that_a_person_asked_something_of(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.owner.execute(
        "INSERT INTO public.outbox_request (message_id, kind, reason, requested_by) VALUES (%s, 'cancel', 'r', 1)",
        (message["id"],),
    )

    assert leases.claim(outbox, owner="x") is None


def test_it_claims_in_the_order_in_which_messages_are_due(desk: Desk, outbox: Any) -> None:
    late, early = desk.charge(), desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET next_attempt_at = now() - interval '1 h' WHERE id = %s", (early["id"],))

    assert [(message or {}).get("id") for message in (leases.claim(outbox, owner="x") for _ in range(3))] == [
        early["id"],
        late["id"],
        None,
    ]


def test_it_writes_ahead_before_each_call(desk: Desk, outbox: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message

    leases.begin_send(outbox, message=message)

    after = desk.read(message)
    assert after["sending_at"] == after["first_sent_at"]
    assert (after["key_deadline"] - after["first_sent_at"]).total_seconds() == leases.KEY_HOURS * 3600
    assert after["leased_until"] > message["leased_until"]
    assert after["sends"] == 1


@pytest.mark.parametrize("verb", ["begin_send", "renew", "renew_key", "advance"])
@pytest.mark.parametrize("how", ["expired", "taken", "settled"])
def test_it_does_nothing_without_the_lease(desk: Desk, outbox: Any, verb: str, how: str) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    expire(desk, message)
    if how != "expired":
        leases.rescue(outbox)
        taken = leases.claim(outbox, owner="y")
        assert taken and taken["id"] == message["id"]
        if how == "settled":
            settling.settle(outbox, message=taken, outcome=Outcome(kind="rejected"), source="response")
    elif verb in ("renew_key", "advance"):
        return  # while nobody has taken it, its holder may still write what it knows
    before = desk.read(message)

    more = {"step": 1, "provider_id": "pi_1", "provider_status": None} if verb == "advance" else {}
    with pytest.raises(LeaseLost):
        getattr(leases, verb)(outbox, message=message, **more)

    assert desk.read(message) == before


def test_it_puts_a_message_back_that_was_not_sent(desk: Desk, outbox: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    expire(desk, message)

    assert leases.rescue(outbox) == [(message["id"], "ready")]

    after = desk.read(message)
    assert (after["ever_unknown"], after["attempts"], after["spared"], after["first_sent_at"]) == (False, 0, 1, None)
    assert desk.deliveries(message) == []


@pytest.mark.parametrize("origin", ["accepted", "uncertain"])
def test_it_puts_a_message_back_where_it_came_from(desk: Desk, outbox: Any, origin: str) -> None:
    made = desk.charge()
    desk.put(made, origin)
    message = leases.claim(outbox, owner="x")
    assert message
    expire(desk, message)

    assert leases.rescue(outbox) == [(made["id"], origin)]
    assert desk.read(message)["attempts"] == 0


def test_it_does_not_know_what_became_of_a_call_whose_worker_is_gone(desk: Desk, outbox: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    leases.begin_send(outbox, message=message)
    expire(desk, message)

    assert leases.rescue(outbox) == [(message["id"], "uncertain")]

    assert desk.read(message)["ever_unknown"] is True
    assert desk.deliveries(message) == [("create", "uncertain")]
    assert leases.rescue(outbox) == []


def test_it_rescues_nothing_that_another_rescuer_has_in_hand(desk: Desk, outbox: Any, other: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    expire(desk, message)
    with outbox.transaction():
        assert len(leases.rescue(outbox)) == 1
        assert leases.rescue(other) == []


def test_it_leaves_a_lease_alone_that_has_not_run_out(desk: Desk, outbox: Any) -> None:
    desk.charge()
    assert leases.claim(outbox, owner="x")

    assert leases.rescue(outbox) == []


def test_it_keeps_a_late_answer_as_evidence_and_changes_nothing(desk: Desk, outbox: Any, other: Any) -> None:
    desk.charge()
    stale = leases.claim(outbox, owner="slow")
    assert stale
    leases.begin_send(outbox, message=stale)
    expire(desk, stale)
    leases.rescue(other)
    desk.deliver_all(stale)
    before = desk.read(stale)

    outcome = Outcome(kind="rejected", refusal="insufficient_funds", http_status=402, request_id="req_late")
    with pytest.raises(LeaseLost):
        settling.settle(
            outbox,
            message=stale,
            outcome=outcome,
            source="response",
            delivery=Delivery(step="confirm", outcome=outcome, duration_ms=9),
        )

    assert desk.read(stale) == before
    assert desk.invoice(stale) == "paid"
    assert desk.deliveries(stale)[-1] == ("confirm", "rejected, stale")
    evidence = desk.one("SELECT * FROM public.outbox_delivery WHERE stale")
    assert (evidence["request_id"], evidence["lease_token"]) == ("req_late", stale["lease_token"])


def test_it_never_has_two_messages_of_an_aggregate_in_flight(desk: Desk, outbox: Any) -> None:
    first, second = desk.refund_pair(desk.paid())
    assert leases.claim(outbox, owner="x")

    with pytest.raises(Exception, match="outbox_message_one_in_flight"):
        desk.put(second, "leased")
    assert desk.read(first)["state"] == "leased"


def test_it_claims_several_and_of_each_aggregate_the_first(desk: Desk, outbox: Any) -> None:
    first, second = desk.refund_pair(desk.paid())
    charges = [desk.charge() for _ in range(4)]
    desk.owner.execute("UPDATE public.outbox_message SET blocked = false")

    claimed = leases.claim_some(outbox, owner="x", limit=4)

    assert [message["id"] for message in claimed] == [first["id"], *(message["id"] for message in charges[:3])]
    assert len({message["lease_token"] for message in claimed}) == 4
    assert [message["id"] for message in leases.claim_some(outbox, owner="y", limit=4)] == [charges[3]["id"]]
    assert desk.read(second)["state"] == "ready"


def test_it_writes_ahead_for_several_but_not_for_one_that_is_lost(desk: Desk, outbox: Any) -> None:
    charges = [desk.charge() for _ in range(3)]
    claimed = leases.claim_some(outbox, owner="x", limit=3)
    expire(desk, claimed[1])
    leases.rescue(outbox)

    begun = leases.begin_sends(outbox, messages=claimed)

    assert [message["id"] for message in begun] == [claimed[0]["id"], claimed[2]["id"]]
    assert [bool(desk.read(message)["sending_at"]) for message in charges] == [True, False, True]


def test_all_that_a_killed_worker_had_claimed_come_back(desk: Desk, outbox: Any) -> None:
    charges = [desk.charge() for _ in range(4)]
    claimed = leases.claim_some(outbox, owner="x", limit=4)
    leases.begin_sends(outbox, messages=claimed[:2])
    for message in claimed:
        expire(desk, message)

    leases.rescue(outbox)

    after = [desk.read(message) for message in charges]
    assert [(row["state"], row["attempts"]) for row in after] == [("uncertain", 1)] * 2 + [("ready", 0)] * 2
    assert len(leases.claim_some(outbox, owner="y", limit=8)) == 4


def test_a_lease_of_a_clock_that_was_wrong_ends(desk: Desk, outbox: Any) -> None:
    desk.charge()
    message = leases.claim(outbox, owner="x")
    assert message
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() + interval '1 d'")

    assert leases.rescue(outbox) == [(message["id"], "ready")]


def test_one_that_ends_its_workers_again_and_again_waits_longer_and_is_buried(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.owner.execute("UPDATE public.outbox_message SET spared = max_attempts + 1, give_up_at = now() - interval '1 s'")

    desk.deliver()

    assert (desk.read(message)["state"], desk.read(message)["last_error"]) == ("dead", "every attempt was lost")
    assert desk.read(message)["first_sent_at"] is None


def test_a_broken_message_keeps_no_other_from_being_rescued(desk: Desk, outbox: Any) -> None:
    broken, fine = desk.charge(), desk.charge()
    for message in leases.claim_some(outbox, owner="x", limit=2):
        leases.begin_send(outbox, message=message)
        expire(desk, message)
    desk.owner.execute("UPDATE public.outbox_message SET steps = '[]' WHERE id = %s", (broken["id"],))

    assert sorted(leases.rescue(outbox)) == [(broken["id"], "uncertain"), (fine["id"], "uncertain")]


FINISHED = """
INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, subject, payload, steps, repeat, state, finished_at)
SELECT 'payment.charge', 'stripe', 'invoice:' || n, 'bulk:' || n, 1, '{}', '[]', 'keyed', 'succeeded', now()
FROM generate_series(1, 20000) AS n
"""


def buffers(conn: Any) -> int:
    """Return how many pages a claim looks at, and undo the claim."""
    explained = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + leases.CLAIM
    with conn.transaction(force_rollback=True):
        given = {
            "owner": "x",
            "lease": 120,
            "limit": 1,
            "longest": 3600,
            "destinations": ["chat", "email", "stripe"],
            "rooms": [1, 1, 1],
        }
        plan = conn.execute(explained, given).fetchone()[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def test_it_claims_at_the_same_cost_however_much_is_done(desk: Desk, outbox: Any, superuser: Any) -> None:
    for _ in range(3):
        desk.charge()
    superuser.execute("VACUUM ANALYZE public.outbox_message")
    before = buffers(outbox)

    desk.owner.execute(FINISHED)
    superuser.execute("VACUUM ANALYZE public.outbox_message")

    assert buffers(outbox) <= before * 1.2 + 10
    outbox.execute("SET plan_cache_mode = force_generic_plan")
    assert buffers(outbox) <= before * 1.2 + 10
