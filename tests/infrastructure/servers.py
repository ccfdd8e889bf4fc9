"""A PostgreSQL of the test's own, with the schema and the logins: one that may be killed."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sandbox.servers import accounts, postgres
from tests import databases
from tests.waiting import until

# What would write a server's log to the disk though nobody waits for it; its WAL writer is stopped when that matters.
NOBODY_FLUSHES = {"autovacuum": "off", "bgwriter_lru_maxpages": "0", "checkpoint_timeout": "1d", "wal_writer_delay": "10s"}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running server and the database in it."""

    server: postgres.Server
    database: str

    def address(self, login: str | None = None) -> str:
        """Return the address for a login, or for the superuser."""
        return databases.address(admin=self.server.superuser_url(), database=self.database, login=login)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what the superuser sees."""
        with psycopg.connect(self.address(), autocommit=True) as conn:
            return conn.execute(query, values).fetchall()

    def terminate_everybody(self) -> None:
        """End every session of the database but this one."""
        others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        living = "SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s)"
        with psycopg.connect(self.address(), autocommit=True) as conn:
            ended = [pid for (pid,) in conn.execute(others).fetchall()]
            conn.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", (ended,))
            # Who connects again at once is another session.
            until(lambda: not conn.execute(living, (ended,)).fetchall(), what="the end of every session")

    def restart_at_once(self) -> None:
        """Let the server drop everything and recover, as `pg_ctl restart -m immediate` does."""
        pid = self.server.postmaster()
        assert pid
        os.kill(pid, signal.SIGQUIT)
        until(lambda: self.server.postmaster() is None, seconds=30, what="no postmaster")
        self.server.start()

    @contextmanager
    def losing_what_nobody_waits_for(self) -> Iterator[None]:
        """Kill the server at the end of the block, in which only what somebody waits for reaches the disk; start it again.

        Whoever waits for a commit brings what was committed before to the disk, too: nobody else may write meanwhile.
        """
        [(writer,)] = self.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        os.kill(writer, signal.SIGSTOP)
        try:
            yield
        finally:
            pid = self.server.postmaster()
            assert pid
            os.kill(pid, signal.SIGKILL)
            os.kill(writer, signal.SIGKILL)
            until(lambda: self.server.postmaster() is None, seconds=30, what="no postmaster")
            self.server.start()

    def another(self) -> "Cluster":
        """Return a new, empty database of the same server."""
        return Cluster(server=self.server, database=databases.clone(self.server.superuser_url()))


@contextmanager
def full_disk(address: str, *, table: str, folder: Path) -> Iterator[Callable[[], None]]:
    """Move an empty table of a database to a disk without room for one page, and give what makes room; skips where it may not."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"A small disk cannot be mounted here: {done.stderr.strip()}")
    accounts.for_servers().own(folder)
    filler = folder / "filler"
    with psycopg.connect(address, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(sql.Literal(str(folder))))
        conn.execute(sql.SQL("ALTER TABLE public.{} SET TABLESPACE small").format(sql.Identifier(table)))
    with suppress(OSError), open(filler, "wb", buffering=0) as file:
        while file.write(bytes(1024)):
            pass
    try:
        yield filler.unlink
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def cluster(folder: Path, **settings: str) -> Iterator[Cluster]:
    """Run a server whose acknowledged commits survive a kill."""
    server = postgres.Server(data=folder / "postgres", settings=postgres.QUICK | NOBODY_FLUSHES | settings)
    server.start()
    try:
        yield Cluster(server=server, database=databases.clone(server.superuser_url()))
    finally:
        server.stop()
