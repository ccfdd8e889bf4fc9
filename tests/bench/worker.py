"""A process that delivers everything with so many hands, and prints how long it took: `python -m tests.bench.worker 8`."""

import json
import sys
import time

import django


def main(hands: int) -> None:
    """Deliver until nothing is left."""
    from ledger import connections
    from outbox import crews
    from tests.bench import nowhere

    nowhere.install()
    pool = connections.pool()
    with pool.connection():
        began = time.perf_counter()
    crews.Crew(hands=hands).work(pool, go_on=lambda: True, wake=lambda: None)
    sys.stdout.write(json.dumps({"seconds": time.perf_counter() - began}))
    pool.close()


if __name__ == "__main__":
    django.setup()
    main(int(sys.argv[1]))
