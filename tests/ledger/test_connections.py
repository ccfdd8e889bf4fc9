"""One pool a process, whoever comes first."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from ledger import connections


def test_it_opens_one_pool_for_threads_that_come_at_once(database: None) -> None:
    connections.pool().close()
    connections._pool.cache_clear()
    together = Barrier(8)

    def first(_: int) -> Any:
        together.wait()
        return connections.pool()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(first, range(8)))) == 1
