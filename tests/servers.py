"""The tests' own PostgreSQL and broker, kept from run to run; `python -m tests.servers` stops them."""

import os
import re
from pathlib import Path

import psycopg

from sandbox.servers import postgres, valkey

FOLDER = Path(__file__).resolve().parent.parent / "var" / "tests"
# Nobody needs these data after a power cut; and tests of races, with a connection for each who presses, run beside each other.
POSTGRES = postgres.Server(data=FOLDER / "postgres", settings=postgres.QUICK | {"max_connections": "500"})
BROKER = valkey.Server(data=FOLDER / "valkey")


def superuser() -> str:
    """Return a superuser's address: `BACKSTOP_TEST_DATABASE_URL`, else an embedded server."""
    if given := os.environ.get("BACKSTOP_TEST_DATABASE_URL"):
        return given
    POSTGRES.start()
    return POSTGRES.superuser_url()


def broker() -> str:
    """Return the broker's address: `REDIS_URL`, else an embedded server; each test process has a database of its own.

    A worker of one process would hear the bells that another process has rung.
    """
    if not (address := os.environ.get("REDIS_URL")):
        BROKER.start()
        address = BROKER.url()
    return numbered(address=address, number=process())


def numbered(*, address: str, number: int) -> str:
    """Return a broker's address with another number of its database."""
    return re.sub(r"(db=|/)\d+$", rf"\g<1>{number}", address)


def process() -> int:
    """Return the number of this test process among those that share the work, from 0, at most 7."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8


def in_use() -> bool:
    """Say whether other test processes are at work."""
    with psycopg.connect(POSTGRES.superuser_url()) as conn:
        found = conn.execute("SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
        return found.fetchone() is not None


if __name__ == "__main__" and not (POSTGRES.postmaster() and in_use()):
    POSTGRES.stop()
    BROKER.stop()
