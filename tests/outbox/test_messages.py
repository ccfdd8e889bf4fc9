"""Promising an effect: once, in order, with requests that never change."""

import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from billing.handlers import charge_steps
from outbox import handlers, messages
from outbox.messages import Cause
from tests.billing import makers
from tests.outbox.desk import Desk
from tests.waiting import until

CHARGE = {
    "invoice_id": 42,
    "customer_id": 1,
    "amount_minor": 48_000,
    "currency": "EUR",
    "provider_customer_id": "cus_1",
    "provider_payment_method": "pm_1",
    "card_last4": "4242",
}


def enqueue(
    conn: Any, *, key: str = "charge:invoice:42:1", aggregate: str = "invoice:42", subject: int = 1, **changes: Any
) -> Any:
    cause = Cause(subject=subject, ai_message_id="ai-1", call_index=0)
    payload = CHARGE | changes
    return messages.enqueue(conn, topic="payment.charge", aggregate=aggregate, dedupe_key=key, payload=payload, cause=cause)


def test_it_freezes_the_requests_with_a_key_for_each_step(desk: Desk) -> None:
    message = desk.charge()

    create, confirm = message["steps"]
    assert create["key"] == f"{message['uid']}:create" and confirm["key"] == f"{message['uid']}:confirm"
    assert create["params"]["metadata"]["backstop_uid"] == str(message["uid"])
    assert (create["params"]["amount"], create["params"]["currency"]) == (48_000, "eur")
    assert message["api_version"] == "2026-10-28.endive"
    assert (message["state"], message["attempts"], message["max_attempts"]) == ("ready", 0, messages.MAX_ATTEMPTS)


def test_it_promises_a_fact_once(agent: Any) -> None:
    with makers.about(agent, 1) as conn:
        enqueue(conn)

    with pytest.raises(errors.UniqueViolation, match="outbox_message_once"), makers.about(agent, 1) as conn:
        enqueue(conn)


def test_it_promises_nothing_when_its_cause_is_undone(agent: Any, owner: Any) -> None:
    with agent.transaction(force_rollback=True):
        agent.execute("SELECT set_config('backstop.subject', '1', true)")
        enqueue(agent)

    assert owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (0,)


def test_it_fetches_nothing_so_that_a_pipeline_goes_on(agent: Any) -> None:
    with makers.about(agent, 1, pipeline=True) as conn:
        enqueue(conn)
        enqueue(conn, key="charge:invoice:43:1", aggregate="invoice:43")


def test_it_speaks_of_its_own_customer_only(agent: Any) -> None:
    with pytest.raises(errors.InsufficientPrivilege), makers.about(agent, 1) as conn:
        enqueue(conn, subject=2)


def test_it_may_not_be_promised_by_a_web_process(web: Any) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        enqueue(web)


def test_it_orders_two_promises_about_one_thing(connect: Any, owner: Any) -> None:
    """The second waits for the first to commit, so that a later message never has the lower number."""
    first, second = connect("agent"), connect("agent")
    order: list[str] = []

    def later() -> None:
        with makers.about(second, 1) as conn:
            enqueue(conn, key="second")
        order.append("second")

    with makers.about(first, 1) as conn:
        enqueue(conn, key="first")
        waiting = threading.Thread(target=later)
        waiting.start()
        until(lambda: is_blocked(owner, second))
        order.append("first")
    waiting.join(10)

    assert order == ["first", "second"]
    rows = owner.execute("SELECT dedupe_key FROM public.outbox_message ORDER BY id").fetchall()
    assert rows == [("first",), ("second",)]


def is_blocked(owner: "psycopg.Connection[Any]", other: "psycopg.Connection[Any]") -> bool:
    row = owner.execute("SELECT cardinality(pg_blocking_pids(%s))", (other.info.backend_pid,)).fetchone()
    return bool(row and row[0])


def test_it_knows_its_topics() -> None:
    payments = ["payment.charge", "payment.refund", "payment.credit_note"]
    assert [handler.topic for handler in handlers.every()] == [*payments, "notify.email", "notify.chat"]
    with pytest.raises(handlers.UnknownTopic):
        handlers.find("payment.unknown")


@pytest.mark.parametrize(
    ("minor", "currency", "sent"),
    [(48_000, "EUR", (48_000, "eur")), (500, "JPY", (500, "jpy")), (5, "UGX", (500, "ugx")), (5120, "KWD", (5120, "kwd"))],
)
def test_it_sends_amounts_as_the_provider_counts_them(minor: int, currency: str, sent: tuple[int, str]) -> None:
    params = charge_steps(CHARGE | {"amount_minor": minor, "currency": currency}, UUID(int=1))[0].params

    assert (params["amount"], params["currency"]) == sent


def test_it_says_what_it_does_in_words() -> None:
    charge, refund, *_ = handlers.every()

    assert charge.sentence(CHARGE) == "Charge €480.00 to the card ending in 4242 for invoice 42"
    assert refund.sentence(CHARGE | {"card_last4": None}) == "Refund €480.00 to the card on file for invoice 42"
