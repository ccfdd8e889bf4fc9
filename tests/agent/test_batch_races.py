"""Two workers, one batch; somebody else's write in between; and what is left open afterwards."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from agent.batch import BatchResult, run_batch
from agent.failures import Infrastructure
from agent.tools import registry
from tests.agent.batches import Desk, move_credit

CREDIT = ("ApplyCredit", {"amount_minor": 1000, "currency": "EUR"})


def test_it_applies_a_batch_once_when_two_workers_run_it(desk: Desk) -> None:
    batch = desk.batch(CREDIT)
    barrier = threading.Barrier(8)

    def run(_: int) -> BatchResult:
        barrier.wait()
        return run_batch(desk.pool, batch=batch)

    with ThreadPoolExecutor(8) as workers:
        results = list(workers.map(run, range(8)))
    assert {result.kind for result in results} == {"applied"}
    assert len({result.answers[0].text for result in results}) == 1
    assert desk.count("ledger_execution") == desk.count("agent_window", "amount = 1000") / 3 == 1
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 4000


def test_it_runs_a_serializable_batch_again_after_a_conflict(desk: Desk, owner: "psycopg.Connection[Any]") -> None:
    tools = dict(registry())
    tries = 0

    def conflicting(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        nonlocal tries
        tries += 1
        conn.execute(
            "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", (desk.customer,)
        ).fetchone()
        if tries == 1:  # somebody else changes what was read, before it is written
            move_credit(owner, desk.customer, amount_minor=-1000)
        return dict(tools["ApplyCredit"].run(conn, arguments, cause))

    serializable = tools | {"ApplyCredit": replace(tools["ApplyCredit"], run=conflicting, isolation="serializable")}
    batch = desk.batch(CREDIT)
    with pytest.raises(Infrastructure):
        run_batch(desk.pool, batch=batch, tools=serializable)
    assert desk.outcomes()[0]["sqlstate"] == "40001"
    assert run_batch(desk.pool, batch=batch, tools=serializable).kind == "applied"
    assert desk.scalar("SELECT balance_minor FROM public.billing_credit_account") == 3000


def test_it_leaves_no_transaction_open(desk: Desk) -> None:
    for calls in (
        [CREDIT],
        [("ApplyCredit", {"amount_minor": 99_000, "currency": "EUR"})],
        [("ApplyCredit", {"amount_minor": -1})],
    ):
        run_batch(desk.pool, batch=desk.batch(*calls))
        with desk.pool.connection() as conn:
            assert conn.info.transaction_status is TransactionStatus.IDLE
            assert conn.cursor_factory is psycopg.Cursor
