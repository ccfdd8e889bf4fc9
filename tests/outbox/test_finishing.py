"""Tries that end at about the same time: one transaction, and each by itself when that fails."""

from contextlib import nullcontext
from typing import Any

import psycopg
import pytest

from outbox import finishing, leases
from outbox.endings import Delivery, Ending
from outbox.leases import Row
from outbox.outcomes import Outcome
from tests.outbox.desk import Desk

SUCCEEDED = "SELECT xmin::text FROM public.outbox_message WHERE state = 'succeeded'"


@pytest.fixture
def together() -> finishing.Together:
    """Return what writes for all who come meanwhile."""
    return finishing.Together()


def begun(desk: Desk, count: int) -> list[Row]:
    for _ in range(count):
        desk.charge()
    with desk.pool.connection() as conn:
        return leases.begin_sends(conn, messages=leases.claim_some(conn, owner="x", limit=count))


def paid(message: Row) -> Ending:
    """Return the ending of a charge that succeeded; nothing was sent."""
    outcome = Outcome(kind="succeeded", provider_id=f"pi_{message['id']}", provider_status="succeeded", http_status=200)
    return finishing.ending(message, outcome, source="response", delivery=Delivery(step="confirm", outcome=outcome))


def test_it_settles_several_in_one_transaction(desk: Desk, together: finishing.Together) -> None:
    messages = begun(desk, 5)

    together._write(desk.pool, [paid(message) for message in messages])

    assert [desk.invoice(message) for message in messages] == ["paid"] * 5
    assert [desk.deliveries(message) for message in messages] == [[("confirm", "succeeded")]] * 5
    assert len(set(desk.owner.execute(SUCCEEDED).fetchall())) == 1


def test_it_keeps_the_evidence_of_one_whose_lease_was_lost(desk: Desk, together: finishing.Together) -> None:
    messages = begun(desk, 3)
    lost = messages[1]
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE id = %s", (lost["id"],))
    with desk.pool.connection() as conn:
        leases.rescue(conn)

    together._write(desk.pool, [paid(message) for message in messages])

    assert [desk.read(message)["state"] for message in messages] == ["succeeded", "uncertain", "succeeded"]
    assert desk.deliveries(lost)[-1] == ("confirm", "succeeded, stale")
    assert desk.invoice(lost) == "charge_queued"


def test_one_whose_effect_fails_keeps_no_other_from_its_end(desk: Desk, together: finishing.Together) -> None:
    messages = begun(desk, 3)
    broken = messages[1]
    desk.owner.execute("UPDATE public.outbox_message SET payload = '{}' WHERE id = %s", (broken["id"],))

    together._write(desk.pool, [paid(message) for message in messages])

    assert [desk.read(message)["state"] for message in messages] == ["succeeded", "uncertain", "succeeded"]
    assert desk.read(broken)["last_error"].startswith("settling failed")
    assert [len(desk.deliveries(message)) for message in messages] == [1, 1, 1]


def test_a_customer_who_is_locked_keeps_the_others_waiting_no_longer_than_the_lock(
    desk: Desk, together: finishing.Together, outbox_address: str
) -> None:
    messages = begun(desk, 2)
    with desk.owner.transaction():
        held = "SELECT 1 FROM public.billing_invoice WHERE id = %s FOR UPDATE"
        desk.owner.execute(held, (messages[0]["payload"]["invoice_id"],))
        with psycopg.connect(outbox_address, autocommit=True) as conn:
            conn.execute("SET lock_timeout = '200ms'")
            pool: Any = Single(conn)
            together._write(pool, [paid(message) for message in messages])

    assert [desk.read(message)["state"] for message in messages] == ["leased", "succeeded"]


class Single:
    """A pool of one connection."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def connection(self) -> Any:
        """Lend it."""
        return nullcontext(self._conn)
