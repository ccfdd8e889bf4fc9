"""Where the measurements are taken: a server of their own that does not forget at a power cut, a database for each."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from sandbox.servers import postgres
from tests import databases
from tests.outbox.provider import API_KEY

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A database with our tables."""

    admin: str
    database: str

    def address(self, login: str | None = None) -> str:
        """Return the database's address as a login, or as the superuser."""
        return databases.address(admin=self.admin, database=self.database, login=login)

    def environment(self, login: str, **more: str) -> Mapping[str, str]:
        """Return the environment of a process of ours that works here."""
        settings = {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DJANGO_SECRET_KEY": "only-for-tests",
            "DATABASE_URL": self.address(login),
            "BACKSTOP_LOGIN": login,
            "BACKSTOP_DATA": tempfile.gettempdir(),
            "STRIPE_API_KEY": API_KEY,
        }
        return os.environ | settings | more

    def run(self, module: str, *words: object, login: str = "outbox", **more: str) -> str:
        """Run a module of ours to its end, and return what it printed."""
        command = [sys.executable, "-m", module, *map(str, words)]
        done = subprocess.run(command, env=self.environment(login, **more), capture_output=True, text=True, cwd=databases.BASE)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout


@contextmanager
def server() -> Iterator[str]:
    """Run a server with the durability of an installation, and return its superuser's address."""
    with tempfile.TemporaryDirectory(prefix="backstop-bench-") as folder:
        running = postgres.Server(data=Path(folder) / "postgres")
        running.start()
        try:
            yield running.superuser_url()
        finally:
            running.stop()


@contextmanager
def place(admin: str) -> Iterator[Place]:
    """Give a fresh database with our tables."""
    name = databases.clone(admin)
    try:
        yield Place(admin=admin, database=name)
    finally:
        databases.drop(admin, name)


@contextmanager
def scratch(admin: str, name: str) -> Iterator[str]:
    """Give the address of an empty database."""
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield databases.address(admin=admin, database=name)
    finally:
        databases.drop(admin, name)


def durability(admin: str) -> dict[str, str]:
    """Return the settings that say what a commit is worth."""
    with psycopg.connect(admin) as conn:
        return {name: str(conn.execute(f"SHOW {name}").fetchone()[0]) for name in SETTINGS}  # type: ignore[index]
