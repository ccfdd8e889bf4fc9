"""What a database says no to by itself: other sessions' locks, limits of time, a read-only or full server, an empty pool."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import date
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from agent import preamble
from agent.batch import run_batch
from agent.failures import Infrastructure
from agent.tools import Tool, registry
from ledger.connections import Pool
from tests import databases, faults, plugin
from tests.agent import conftest as agent_fixtures
from tests.agent.batches import Desk, hold_thread, make_customer, move_credit
from tests.agent.scripts import calls, model, says
from tests.agent.talks import Talk
from tests.billing import makers
from tests.waiting import until

Connection = psycopg.Connection[Any]
Pools = Callable[..., Pool]
talk = agent_fixtures.talk
CREDIT = ("ApplyCredit", {"amount_minor": 1000, "currency": "EUR"})
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND usename = 'backstop_agent'"
BUSY = "FAILED: The data was busy for too long. Send the same step again."


@pytest.fixture
def pools(database: None) -> Iterator[Pools]:
    """Return a function that opens a pool as the agent's worker has it, but smaller or less patient."""
    with ExitStack() as opened:

        def open_as(*, size: int = 8, timeout: float = 10) -> Pool:
            address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
            return opened.enter_context(Pool(address, size=size, timeout=timeout))

        yield open_as


def first(tool: str, do: Callable[[Connection], object], *, times: int = 1) -> Mapping[str, Tool]:
    """Return the tools, of which one does something before it begins, the first times that it is called."""
    usual, left = registry()[tool], times

    def run(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        nonlocal left
        left -= 1
        if left >= 0:
            do(conn)
        return dict(usual.run(conn, arguments, cause))

    return dict(registry()) | {tool: replace(usual, run=run)}


def apply_credit(talk: Talk) -> tuple[str, dict[str, Any]]:
    return ("ApplyCredit", {"customer_id": talk.customer, "amount_minor": 1000, "currency": "EUR"})


def void(customer: int, invoice: int) -> tuple[str, dict[str, Any]]:
    return ("VoidInvoice", {"customer_id": customer, "invoice_id": invoice, "reason": "a test"})


def outcomes(talk: Talk) -> list[tuple[Any, ...]]:
    query = "SELECT outcome, sqlstate FROM public.ledger_attempt_outcome WHERE thread = %s ORDER BY attempt_id"
    return talk.rows(query, talk.thread)


def check_applied_once(talk: Talk, *, tools: int = 1) -> None:
    """Compare with a conversation that nothing disturbed."""
    assert [role for role, _ in talk.transcript()] == ["human", "ai", *["tool"] * tools, "ai"]
    assert talk.one("SELECT count(*) FROM public.ledger_execution WHERE thread = %s", talk.thread) == tools
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", talk.customer) == 11_000


# -- other sessions ----------------------------------------------------------------------------


def test_it_runs_a_step_again_that_was_chosen_as_the_victim_of_a_deadlock(talk: Talk, superuser: Connection) -> None:
    invoice = makers.make_invoice(talk.owner, customer_id=talk.customer)
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE)
    talk.say("Pay the credit out and void the invoice")
    with psycopg.connect(address, options="-c deadlock_timeout=1min") as rival, ThreadPoolExecutor(1) as threads:
        rival.execute("SELECT FROM public.billing_invoice WHERE id = %s FOR UPDATE", (invoice,))

        def cross(_: Connection) -> None:
            update = "UPDATE public.billing_credit_account SET entries = entries WHERE customer_id = %s"
            threads.submit(lambda: (rival.execute(update, (talk.customer,)), rival.commit()))
            until(lambda: faults.waits(superuser), what="a rival that waits")

        script = (calls(apply_credit(talk), void(talk.customer, invoice)), says("Done."))
        assert talk.drive(*script, tools=first("VoidInvoice", cross)) == "idle"
    assert outcomes(talk) == [("infrastructure", "40P01"), ("committed", None)]
    check_applied_once(talk, tools=2)


def test_it_ends_both_conversations_that_are_in_each_others_way(talk: Talk) -> None:
    invoices = [
        makers.make_invoice(talk.owner, customer_id=talk.customer, billing_period=date(2025, month, 1)) for month in (1, 2)
    ]
    other = Talk(pool=talk.pool, owner=talk.owner, web=talk.web, customer=talk.customer)
    together = Barrier(2, timeout=20)

    def drive(mine: Talk, order: list[int]) -> str:
        step = calls(*(void(mine.customer, invoice) for invoice in order))
        tools = first("VoidInvoice", lambda _: together.wait())
        return mine.drive(step, says("One of us did it."), tools=tools)

    for mine in (talk, other):
        mine.say("Void both")
    with ThreadPoolExecutor(2) as threads:
        assert set(threads.map(drive, (talk, other), (invoices, invoices[::-1]))) == {"idle"}
    # Every tool locks the customer's account first, so that one waits for the other instead of a deadlock.
    assert sorted([*outcomes(talk), *outcomes(other)]) == [("committed", None), ("rolled_back", None)]
    assert talk.rows("SELECT DISTINCT status FROM public.billing_invoice") == [("void",)]
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2


def conflicting(talk: Talk, *, times: int) -> Mapping[str, Tool]:
    """Return the tools, of which ApplyCredit needs a serial order and somebody else comes between, the first times."""

    def come_between(conn: Connection) -> None:
        conn.execute(
            "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", (talk.customer,)
        ).fetchone()
        move_credit(talk.owner, talk.customer, amount_minor=1)

    tools = first("ApplyCredit", come_between, times=times)
    return dict(tools) | {"ApplyCredit": replace(tools["ApplyCredit"], isolation="serializable")}


def test_it_runs_a_step_again_without_the_model_after_a_serialization_failure(talk: Talk) -> None:
    talk.say("Pay the credit out")
    scripted = model(calls(apply_credit(talk)), says("Done."))
    assert talk.drive(model=scripted, tools=conflicting(talk, times=2)) == "idle"
    assert outcomes(talk) == [("infrastructure", "40001")] * 2 + [("committed", None)]
    assert len(scripted.chat.prompts) == 2  # once for the step, once after it
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account") == 12_000 + 2 - 1000


def test_it_asks_a_person_when_the_conflict_stays_and_applies_the_step_later(talk: Talk) -> None:
    talk.say("Pay the credit out")
    script, tools = (calls(apply_credit(talk)), says("Done.")), conflicting(talk, times=3)
    assert talk.drive(*script, tools=tools) == "waiting"
    assert outcomes(talk) == [("infrastructure", "40001")] * 3
    assert talk.escalations() == [("infrastructure", "open")]
    talk.decide("retry")
    assert talk.drive(*script, tools=tools) == "idle"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 1


def test_it_runs_a_step_again_whose_beginning_waited_for_a_lock(talk: Talk, superuser: Connection) -> None:
    talk.say("Pay the credit out")
    superuser.execute("SELECT pg_advisory_lock(%s)", (preamble.lock_key(talk.thread),))
    with ThreadPoolExecutor(1) as threads:
        driven = threads.submit(talk.drive, calls(apply_credit(talk)), says("Done."))
        try:
            query = "SELECT FROM public.ledger_attempt_outcome WHERE sqlstate = '55P03'"
            until(lambda: superuser.execute(query).fetchone() is not None, seconds=20, what="a step that gave up waiting")
        finally:
            superuser.execute("SELECT pg_advisory_unlock_all()")
        assert driven.result(20) == "idle"
    assert outcomes(talk) == [("infrastructure", "55P03"), ("committed", None)]
    check_applied_once(talk)


def test_it_tells_the_model_when_a_call_waited_for_a_lock(talk: Talk, superuser: Connection) -> None:
    talk.say("Pay the credit out")
    faults.hold(superuser, f"SELECT FROM public.billing_credit_account WHERE customer_id = {talk.customer} FOR UPDATE")
    step = calls(apply_credit(talk))

    def again(_: object) -> dict[str, Any]:
        faults.let_go(superuser)
        return step

    assert talk.drive(step, again, says("Done.")) == "idle"
    assert outcomes(talk) == [("rolled_back", "55P03"), ("committed", None)]
    assert next(text for role, text in talk.texts() if role == "tool") == BUSY
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 1


# -- limits of time ----------------------------------------------------------------------------


def another(desk: Desk) -> Desk:
    """Return another customer's desk."""
    customer = make_customer(desk.owner, credit_minor=5000)
    return Desk(pool=desk.pool, owner=desk.owner, customer=customer, thread=hold_thread(desk.owner))


def test_it_ends_what_takes_too_long(desk: Desk, superuser: Connection) -> None:
    def idle(conn: Connection) -> None:
        [(pid,)] = conn.execute("SELECT pg_backend_pid()").fetchall()
        gone = "SELECT FROM pg_stat_activity WHERE pid = %s"
        until(lambda: superuser.execute(gone, (pid,)).fetchone() is None, seconds=20, what="the end of an idle transaction")

    def slow(conn: Connection) -> None:
        conn.execute("SELECT pg_sleep(60)").fetchone()

    def many_slow(conn: Connection) -> None:
        for _ in range(4):
            conn.execute("SELECT pg_sleep(4)").fetchone()

    def run(mine: Desk, does: Callable[[Connection], None]) -> str:
        batch = mine.batch(("ApplyCredit", CREDIT[1]), ("LookUpCustomer", {}))
        try:
            return run_batch(mine.pool, batch=batch, tools=first("LookUpCustomer", does)).answers[1].text
        except Infrastructure:
            return run_batch(mine.pool, batch=batch).kind

    desks = [another(desk) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(run, desks, (slow, idle, many_slow))) == [BUSY, "applied", "applied"]
    rows = desk.outcomes()  # an idle connection is closed without a word that its next statement could read
    states = [[(row["outcome"], row["sqlstate"]) for row in rows if row["thread"] == mine.thread] for mine in desks]
    again = [("committed", None)]
    assert states == [[("rolled_back", "57014")], [("infrastructure", None), *again], [("infrastructure", "25P04"), *again]]
    balances = "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s"
    assert [mine.scalar(balances, mine.customer) for mine in desks] == [5000, 4000, 4000]


# -- a server that takes nothing, or nobody ----------------------------------------------------


def driven(talk: Talk, *script: Any) -> str:
    """Return how a drive ended; empty when there was no connection for it."""
    try:
        return talk.drive(*script)
    except PoolTimeout:
        return ""


SERVERS = {
    "read only": ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
    "full of sessions": ("WITH CONNECTION LIMIT 0", "WITH CONNECTION LIMIT -1"),
}


@pytest.mark.parametrize(("becomes", "heals"), SERVERS.values(), ids=SERVERS.keys())
def test_it_leaves_the_thread_for_later_when_its_server_becomes(
    talk: Talk, pools: Pools, superuser: Connection, becomes: str, heals: str
) -> None:
    def change(how: str) -> None:
        superuser.execute(f'ALTER DATABASE "{plugin.DATABASE}" {how}')
        superuser.execute(f"SELECT pg_terminate_backend(pid, 5000) {OURS}")

    def changed(_: object) -> dict[str, Any]:
        change(becomes)
        return calls(apply_credit(talk))

    talk.pool = pools(timeout=1)
    talk.say("Pay the credit out")
    try:
        assert talk.drive(changed, says("Done.")) == "left"
        with suppress(psycopg.Error):  # what a worker that is rung meanwhile comes to
            assert talk.drive(says("never")) in ("busy", "left")
    finally:
        change(heals)
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0
    talk.expire()
    until(lambda: driven(talk, calls(apply_credit(talk)), says("Done.")) == "idle", seconds=15, what="a pool that recovered")
    check_applied_once(talk)
    assert talk.escalations() == []


def test_it_may_be_tried_again_when_even_a_refusal_cannot_be_recorded(desk: Desk, pools: Pools, superuser: Connection) -> None:
    refused = desk.batch(("ApplyCredit", {"amount_minor": -1, "currency": "EUR"}))
    superuser.execute(f'ALTER DATABASE "{plugin.DATABASE}" SET default_transaction_read_only = on')
    try:
        with pytest.raises(Infrastructure):
            run_batch(pools(), batch=refused)
    finally:
        superuser.execute(f'ALTER DATABASE "{plugin.DATABASE}" RESET default_transaction_read_only')
    assert run_batch(pools(), batch=refused).kind == "refused"  # a pool that was open may have connected meanwhile


def test_it_does_not_spend_its_tries_on_the_dead_connections_of_a_busy_pool(
    talk: Talk, pools: Pools, superuser: Connection
) -> None:
    talk.pool = pools()

    def all_lost(_: Connection) -> None:
        with ExitStack() as used:  # all of them were looked at just now
            for _ in range(7):
                used.enter_context(talk.pool.connection())
        superuser.execute(f"SELECT pg_terminate_backend(pid, 5000) {OURS}")

    talk.say("Pay the credit out")
    assert talk.drive(calls(apply_credit(talk)), says("Done."), tools=first("ApplyCredit", all_lost)) == "idle"
    assert [outcome for outcome, _ in outcomes(talk)] == ["infrastructure", "committed"]
    check_applied_once(talk)


# -- the pool ----------------------------------------------------------------------------------


def test_it_needs_one_connection_at_a_time(talk: Talk, pools: Pools) -> None:
    talk.pool = pools(size=1, timeout=5)
    talk.web.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('per_call', 'ApplyCredit', 'EUR', 500, 'a test', 1)"
    )
    talk.say("Pay the credit out")
    wrong = calls(("ApplyCredit", apply_credit(talk)[1] | {"amount_minor": -1}))
    script = (wrong, calls(apply_credit(talk)), says("Done."))
    assert talk.drive(*script) == "waiting"
    talk.decide("approve")
    assert talk.drive(*script) == "idle"
    assert [outcome for outcome, _ in outcomes(talk)] == ["refused", "held", "committed"]


def test_it_leaves_the_thread_for_later_when_the_pool_is_empty(talk: Talk, pools: Pools) -> None:
    talk.pool = pools(size=1, timeout=0.3)
    taken: list[Connection] = []

    def take(_: object) -> dict[str, Any]:
        taken.append(talk.pool.getconn())
        return calls(apply_credit(talk))

    talk.say("Pay the credit out")
    assert talk.drive(take, says("Done.")) == "left"
    with pytest.raises(PoolTimeout):
        talk.drive(says("never"))
    talk.pool.putconn(taken.pop())
    talk.expire()
    assert talk.drive(calls(apply_credit(talk)), says("Done.")) == "idle"
    check_applied_once(talk)


def test_it_may_be_tried_again_when_the_pool_is_empty(desk: Desk, pools: Pools) -> None:
    pool, batch = pools(size=1, timeout=0.2), desk.batch(CREDIT)
    with pool.connection(), pytest.raises(Infrastructure):
        run_batch(pool, batch=batch)
    assert run_batch(pool, batch=batch).kind == "applied"
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4000
