"""One pool a process, whoever comes first."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest

from ledger import connections
from tests.waiting import until

PREPARED = "SELECT statement FROM pg_prepared_statements"


def test_it_opens_one_pool_for_threads_that_come_at_once(database: None) -> None:
    connections.pool().close()
    connections._pool.cache_clear()
    together = Barrier(8)

    def first(_: int) -> Any:
        together.wait()
        return connections.pool()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(first, range(8)))) == 1


def test_it_ends_what_a_stopped_process_of_the_same_login_keeps_open(connect: Any) -> None:
    stopped, agent, outbox, waits = connect("agent"), connect("agent"), connect("outbox"), connect("agent")
    with pytest.raises(psycopg.OperationalError), stopped.pipeline():
        stopped.execute("SELECT pg_advisory_xact_lock(1)").fetchone()  # its transaction is open, and not idle
        with outbox.transaction():
            outbox.execute("SELECT 1")
            assert connections.end_overlong(agent, seconds=60) == 0
            until(lambda: connections.end_overlong(agent, seconds=0.05), what="an end")
            assert outbox.execute("SELECT 1").fetchone() == (1,)
        waits.execute("SELECT pg_advisory_lock(1)")
        stopped.execute("SELECT 1").fetchone()


def test_it_forgets_what_a_failed_pipeline_did_not_prepare(database: None) -> None:
    """From the sixth time on a statement is prepared; what comes behind a failed one is skipped, its preparation too."""
    asked = "SELECT 'prepared' WHERE %s"
    with connections.pool().connection() as conn:
        for _ in range(5):
            conn.execute(asked, (True,))
        with pytest.raises(psycopg.errors.DivisionByZero), conn.pipeline():
            conn.execute("SELECT 1 / 0")
            conn.execute(asked, (True,))
        for _ in range(7):
            assert conn.execute(asked, (True,)).fetchone() == ("prepared",)
        assert [name for (name,) in conn.execute(PREPARED).fetchall() if "'prepared'" in name]
