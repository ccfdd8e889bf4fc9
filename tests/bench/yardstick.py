"""The same number of nothings through procrastinate, a task queue on PostgreSQL: `python -m tests.bench.yardstick DSN JOBS N`.

Its workers poll (no NOTIFY), the tasks are coroutines that do nothing, and putting them in is not measured.
"""

import asyncio
import json
import logging
import sys
import time

from procrastinate import App, PsycopgConnector


async def main(address: str, jobs: int, concurrency: int) -> None:
    """Print how many seconds so many jobs took with so many workers."""
    logging.disable(logging.WARNING)
    app = App(connector=PsycopgConnector(conninfo=address, min_size=concurrency, max_size=concurrency + 4))

    @app.task(name="nothing")
    async def nothing(number: int) -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await nothing.batch_defer_async(*[{"number": number} for number in range(jobs)])
        began = time.perf_counter()
        await app.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False, listen_notify=False)
        sys.stdout.write(json.dumps({"seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
