"""The tests' own PostgreSQL and broker, kept from run to run; `python -m tests.servers` stops them."""

import os
from pathlib import Path

import psycopg

from sandbox.servers import postgres, valkey

FOLDER = Path(__file__).resolve().parent.parent / "var" / "tests"
# Nobody needs these data after a power cut.
POSTGRES = postgres.Server(data=FOLDER / "postgres", settings=postgres.QUICK)
BROKER = valkey.Server(data=FOLDER / "valkey")


def superuser() -> str:
    """Return a superuser's address: `BACKSTOP_TEST_DATABASE_URL`, else an embedded server."""
    if given := os.environ.get("BACKSTOP_TEST_DATABASE_URL"):
        return given
    POSTGRES.start()
    return POSTGRES.superuser_url()


def broker() -> str:
    """Return the broker's address: `REDIS_URL`, else an embedded server, of which each test process has a database.

    A worker of one process would hear the bells that another process has rung.
    """
    if given := os.environ.get("REDIS_URL"):
        return given
    BROKER.start()
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return BROKER.url().replace("db=0", f"db={int(number) % 16}")


def in_use() -> bool:
    """Say whether other test processes are at work."""
    with psycopg.connect(POSTGRES.superuser_url()) as conn:
        found = conn.execute("SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
        return found.fetchone() is not None


if __name__ == "__main__" and not (POSTGRES.postmaster() and in_use()):
    POSTGRES.stop()
    BROKER.stop()
