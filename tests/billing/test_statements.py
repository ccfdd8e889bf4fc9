"""What a verb costs and locks: one statement that waits, and the customer's account before anything else."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import Cursor, errors

from billing import customers
from billing.invoices import Reference
from tests.billing import makers
from tests.billing.makers import NOVEMBER, about
from tests.billing.test_scope import ALONE, VERBS

Verb = Callable[[Any, int], Any]
WRITING: dict[str, Verb] = dict(ALONE)
for name, verb in VERBS.items():
    WRITING[name] = lambda conn, customer, verb=verb: verb(conn, Reference(customer_id=customer, billing_period=NOVEMBER))
QUEUING = ("charge", "refund")  # these also lock the aggregate and write the message, and read neither answer


class Counting(Cursor[Any]):
    """Counts what is sent and what is waited for."""

    sent = 0
    fetched = 0

    def execute(self, *args: Any, **options: Any) -> Any:
        Counting.sent += 1
        return super().execute(*args, **options)

    def fetchone(self) -> Any:
        Counting.fetched += 1
        return super().fetchone()


def prepare(owner: Any, verb: str) -> int:
    customer = makers.make_customer(owner, credit_minor=12_000)
    if verb == "refund":
        makers.make_paid_invoice(owner, customer_id=customer, billing_period=NOVEMBER)
    else:
        makers.make_invoice(owner, customer_id=customer)
    return customer


@pytest.mark.parametrize("verb", WRITING)
def test_it_waits_once(owner: Any, agent: Any, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    customer = prepare(owner, verb)
    with about(agent, customer, pipeline=True) as conn:
        monkeypatch.setattr(conn, "cursor_factory", Counting)
        Counting.sent = Counting.fetched = 0
        WRITING[verb](conn, customer)
        assert (Counting.sent, Counting.fetched) == (3 if verb in QUEUING else 1, 1)


def test_it_looks_up_with_one_statement(agent: Any, customer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with about(agent, customer, pipeline=True) as conn:
        monkeypatch.setattr(conn, "cursor_factory", Counting)
        Counting.sent = Counting.fetched = 0
        customers.look_up(conn, customer_id=customer)
        assert (Counting.sent, Counting.fetched) == (1, 1)


@pytest.mark.parametrize("verb", WRITING)
def test_it_locks_the_account_of_the_customer(owner: Any, agent: Any, verb: str) -> None:
    customer, other = prepare(owner, verb), makers.make_customer(owner)
    probe = "SELECT FROM public.billing_credit_account WHERE customer_id = %s FOR NO KEY UPDATE NOWAIT"
    with about(agent, customer) as conn:
        WRITING[verb](conn, customer)
        owner.execute(probe, (other,))
        with pytest.raises(errors.LockNotAvailable):
            owner.execute(probe, (customer,))


@pytest.mark.parametrize("verb", [name for name in WRITING if name != "pay out"])
def test_it_takes_the_account_before_the_invoice(
    owner: Any, connect: Callable[[str], "psycopg.Connection[Any]"], verb: str
) -> None:
    """While another step holds everything of the customer, what a verb waits for is the account."""
    customer = prepare(owner, verb)
    with owner.transaction():
        for table in ("credit_account", "invoice", "payment"):
            owner.execute(f"SELECT FROM public.billing_{table} WHERE customer_id = %s FOR UPDATE", (customer,))
        with pytest.raises(errors.LockNotAvailable) as caught, about(connect("agent"), customer) as conn:
            conn.execute("SET LOCAL lock_timeout = '50ms'")
            WRITING[verb](conn, customer)
    assert "billing_credit_account" in str(caught.value.diag.context)
