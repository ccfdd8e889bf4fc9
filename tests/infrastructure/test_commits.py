"""A connection that is lost around a COMMIT: what was not committed is done once, what was committed is found."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from django.conf import settings
from psycopg_pool import ConnectionPool

from agent.batch import Batch, run_batch
from agent.failures import Infrastructure
from agent.leases import LeaseLost
from ledger import connections
from outbox import leases
from tests import databases, plugin
from tests import proxy as proxies
from tests.agent.batches import Desk as BatchDesk
from tests.agent.batches import make_customer
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk
from tests.billing import makers
from tests.outbox import conftest as outbox_fixtures
from tests.outbox.desk import Desk as OutboxDesk
from tests.proxy import Proxy
from tests.waiting import until

Connection = psycopg.Connection[Any]
Through = Callable[[str], tuple[Proxy, "ConnectionPool[Connection]"]]
sandbox, provider = outbox_fixtures.sandbox, outbox_fixtures.provider
EXECUTED = "INSERT INTO public.ledger_execution"  # the gate reads them, too
PUT, WRITES = "INSERT INTO checkpoints", "INSERT INTO checkpoint_writes"
PERIOD = "2025-11-01"
FREED = 20  # seconds: the database ends a transaction that is idle for 5


@pytest.fixture
def through(database: None) -> Iterator[Through]:
    """Return a function that gives a proxy and a pool of connections as a login that go through it."""
    with ExitStack() as opened:

        def open_as(login: str) -> tuple[Proxy, "ConnectionPool[Connection]"]:
            address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)
            proxy = opened.enter_context(proxies.before(address))
            pool = ConnectionPool(proxy.address, kwargs={"autocommit": True}, min_size=1, max_size=8, open=True)
            opened.callback(pool.close)
            opened.callback(proxy.let_go)
            return proxy, opened.enter_context(pool)

        yield open_as


# -- the proxy ---------------------------------------------------------------------------------


def simply(conn: Connection) -> None:
    with conn.transaction():
        conn.execute(WRITE)


def prepared(conn: Connection) -> None:
    conn.execute("BEGIN", prepare=True)
    conn.execute(WRITE, prepare=True)
    conn.execute("COMMIT", prepare=True)


def piped(conn: Connection) -> None:
    with conn.pipeline():
        conn.execute("BEGIN")
        conn.execute(WRITE)
        conn.execute("SAVEPOINT a")
        conn.execute("RELEASE SAVEPOINT a")
        conn.execute("COMMIT")


def implicitly(conn: Connection) -> None:
    with conn.pipeline():
        conn.execute(WRITE)


def alone(conn: Connection) -> None:
    conn.execute("SELECT 1")
    conn.execute("UPDATE public.billing_customer SET terms_days = terms_days + %s", (1,))


WRITE = "UPDATE public.billing_customer SET terms_days = terms_days + 1"


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("form", [simply, prepared, piped, implicitly, alone])
@pytest.mark.parametrize(("when", "more"), [("before", 0), ("after", 1)])
def test_the_proxy_finds_a_commit_in_every_form(
    through: Through, owner: Connection, form: Callable[[Connection], None], number: int, when: proxies.When, more: int
) -> None:
    customer = make_customer(owner)
    proxy, pool = through("owner")
    with pool.connection() as conn:
        cut = proxy.arm(when, about="terms_days", number=number)
        for _ in range(number - 1):
            form(conn)
        with pytest.raises(psycopg.OperationalError):
            form(conn)
    assert cut.struck.is_set()
    days = "SELECT terms_days - 14 FROM public.billing_customer WHERE id = %s"
    assert owner.execute(days, (customer,)).fetchone() == (number - 1 + more,)


# -- batches -----------------------------------------------------------------------------------


def four(desk: BatchDesk) -> Batch:
    """Return a batch of four calls."""
    of = {"billing_period": PERIOD, "currency": "EUR"}
    return desk.batch(
        ("CreateInvoice", of | {"amount_minor": 48_000}),
        ("ApplyCredit", of | {"amount_minor": 2_000}),
        ("ApplyCredit", of | {"amount_minor": 1_000}),
        ("QueueCharge", of | {"amount_minor": 45_000}),
    )


def applied(desk: BatchDesk) -> tuple[int, int, int, int]:
    """Return how many executions, invoices and messages there are, and the credit that is left."""
    counted = (desk.count(table) for table in ("ledger_execution", "billing_invoice", "outbox_message"))
    return (*counted, desk.scalar("SELECT balance_minor FROM public.billing_credit_account"))  # type: ignore[return-value]


NOTHING, ONCE = (0, 0, 0, 5_000), (4, 1, 1, 2_000)


@pytest.mark.parametrize(("when", "left"), [("before", NOTHING), ("after", ONCE)])
def test_a_batch_whose_commit_is_cut_off_is_applied_once(
    desk: BatchDesk, through: Through, when: proxies.When, left: tuple[int, ...]
) -> None:
    proxy, pool = through("agent")
    batch, cut = four(desk), proxy.arm(when, about=EXECUTED)
    with pytest.raises(Infrastructure):
        run_batch(pool, batch=batch)
    assert cut.struck.is_set()
    assert applied(desk) == left
    again = run_batch(pool, batch=batch)
    assert again.kind == "applied"
    assert [answer.status for answer in again.answers] == ["applied"] * 4
    assert applied(desk) == ONCE


@pytest.mark.parametrize(("when", "left"), [("silent before", NOTHING), ("silent after", ONCE)])
def test_a_batch_whose_commit_is_never_answered_keeps_nobody_waiting(
    desk: BatchDesk, through: Through, when: proxies.When, left: tuple[int, ...]
) -> None:
    proxy, pool = through("agent")
    batch, cut = four(desk), proxy.arm(when, about=EXECUTED)
    ended: list[BaseException] = []
    worker = threading.Thread(target=_failing, args=(pool, batch, ended))
    worker.start()
    assert cut.struck.wait(10)
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    until(lambda: desk.scalar(locks) == 0, seconds=FREED, what="the end of the transaction")
    assert applied(desk) == left
    desk.owner.execute("UPDATE public.agent_thread SET fence = 2")  # its lease has run out, another worker takes over
    desk.fence = 2
    other = run_batch(desk.pool, batch=_taken_over(batch))
    assert other.kind == "applied"
    proxy.let_go()
    worker.join(10)
    assert [type(error) for error in ended] in ([Infrastructure], [LeaseLost])
    assert applied(desk) == ONCE


def test_a_network_that_drops_everything_is_noticed_before_a_lease_runs_out(through: Through) -> None:
    proxy, _ = through("agent")
    with psycopg.connect(proxy.address, **connections.arguments()) as conn, socket.socket(fileno=os.dup(conn.fileno())) as end:
        unanswered = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
        idle, every, most = (
            end.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert 0 < unanswered < settings.LEASE_SECONDS
    assert idle + every * most < settings.LEASE_SECONDS


def _failing(pool: "ConnectionPool[Connection]", batch: Batch, ended: list[BaseException]) -> None:
    try:
        run_batch(pool, batch=batch)
    except Exception as error:
        ended.append(error)


def _taken_over(batch: Batch) -> Batch:
    return Batch(**{name: getattr(batch, name) for name in batch.__dataclass_fields__} | {"fence": 2})


# -- conversations -----------------------------------------------------------------------------


@pytest.fixture
def talk(through: Through, owner: Connection, web: Connection) -> tuple[Proxy, Talk]:
    """Return a conversation that is driven through a proxy, about a customer with €120.00 of credit."""
    proxy, pool = through("agent")
    return proxy, Talk(pool=pool, owner=owner, web=web, customer=make_customer(owner, credit_minor=12_000))


def script(talk: Talk) -> tuple[Any, ...]:
    """Return what the model says: one batch, then the answer."""
    of = {"customer_id": talk.customer, "billing_period": PERIOD, "currency": "EUR"}
    step = calls(("CreateInvoice", of | {"amount_minor": 48_000}), ("ApplyCredit", of | {"amount_minor": 12_000}))
    return step, says("Applied.")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("about", "number"),
    [(EXECUTED, 1), *[(PUT, number) for number in range(1, 6)], *[(WRITES, number) for number in range(1, 5)]],
)
def test_a_conversation_ends_once_whichever_commit_is_cut_off(
    talk: tuple[Proxy, Talk], when: proxies.When, about: str, number: int
) -> None:
    proxy, conversation = talk
    conversation.say("Invoice November, use the credit")
    cut = proxy.arm(when, about=about, number=number)
    for _ in range(4):
        conversation.expire()
        if conversation.drive(*script(conversation)) == "idle":
            break
    assert cut.struck.is_set()
    assert conversation.state() == "idle"
    assert [role for role, _ in conversation.texts()] == ["human", "ai", "tool", "tool", "ai"]
    assert [role for role, _ in conversation.transcript()] == ["human", "ai", "tool", "tool", "ai"]
    assert conversation.one("SELECT count(*) FROM public.ledger_execution") == 2
    assert conversation.one("SELECT balance_minor FROM public.billing_credit_account") == 0
    assert conversation.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(36_000,)]


# -- the outbox --------------------------------------------------------------------------------


@pytest.fixture
def relay(owner: Connection, agent: Connection, provider: Any, through: Through) -> tuple[Proxy, OutboxDesk]:
    """Return a desk whose customer has a card that works and whose relay goes through a proxy."""
    proxy, pool = through("outbox")
    made = OutboxDesk(owner=owner, agent=agent, pool=pool, provider=provider, customer=makers.make_customer(owner))
    made.card("pm_card_visa")
    return proxy, made


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("about", "number"),
    [
        ("SET state = 'leased'", 1),
        ("SET sending_at = now()", 1),
        ("SET step =", 1),
        ("SET sending_at = now()", 2),
        ("finished_at = CASE", 1),
    ],
    ids=["claim", "write-ahead 1", "advance", "write-ahead 2", "settle"],
)
def test_a_charge_moves_money_once_whichever_commit_of_its_relay_is_cut_off(
    relay: tuple[Proxy, OutboxDesk], when: proxies.When, about: str, number: int
) -> None:
    proxy, desk = relay
    message = desk.charge()
    cut = proxy.arm(when, about=about, number=number)
    with pytest.raises(psycopg.OperationalError):
        desk.deliver()
    assert cut.struck.is_set()
    settled = desk.read(message)["state"] == "succeeded"
    assert settled is (when == "after" and about.startswith("finished"))
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)
    desk.deliver_all(message)
    assert (desk.read(message)["state"], desk.invoice(message)) == ("succeeded", "paid")
    assert desk.provider.movements(message["uid"]) == [48_000]
