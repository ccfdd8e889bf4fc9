"""PgBouncer in transaction mode before a PostgreSQL: each transaction may get another session, whose state is thrown away."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from config import logins
from sandbox.servers import accounts
from tests import databases
from tests.agent.serving import free_port
from tests.waiting import until

# A login has three sessions that take turns, and DISCARD ALL runs after every single transaction.
CONFIGURATION = """
[databases]
{database} = {server} dbname={database}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
admin_users = {admin}
logfile = {folder}/log
pool_mode = transaction
default_pool_size = 3
min_pool_size = 3
max_client_conn = 200
server_round_robin = 1
server_reset_query = DISCARD ALL
server_reset_query_always = 1
"""
ADMIN = "pooler"


@dataclass(frozen=True, kw_only=True)
class Pooler:
    """A running PgBouncer."""

    port: int
    database: str

    def address(self, login: str) -> str:
        """Return the address of the database for a login, through the pooler."""
        parts: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "dbname": self.database}
        return databases.as_url(parts | {"user": logins.role(login), "password": databases.PASSWORDS[login]})

    def transactions(self) -> int:
        """Return how many transactions it has carried."""
        return sum(int(row["total_xact_count"]) for row in self._shown("STATS") if row["database"] == self.database)

    def sessions(self) -> dict[str, int]:
        """Return how many sessions at the server each role has."""
        pools = [row for row in self._shown("POOLS") if row["database"] == self.database]
        return {row["user"]: sum(int(row[name]) for name in ("sv_active", "sv_idle", "sv_used")) for row in pools}

    def _shown(self, what: Literal["STATS", "POOLS"]) -> list[dict[str, Any]]:
        parts: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "dbname": "pgbouncer"}
        address = databases.as_url(parts | {"user": ADMIN, "password": ADMIN})
        with psycopg.connect(address, autocommit=True, cursor_factory=psycopg.ClientCursor) as conn:
            cursor = conn.execute(f"SHOW {what}")
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def ready(self) -> bool:
        """Say whether it lets a login through to the database."""
        try:
            with psycopg.connect(self.address("keeper"), connect_timeout=2, prepare_threshold=None) as conn:
                return conn.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False


def program() -> str:
    """Return where PgBouncer is; fails where every part must be there, and skips elsewhere."""
    if found := shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        return found
    sentence = "PgBouncer is not installed: `apt-get install pgbouncer` brings it."
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


@contextmanager
def before(admin: str, *, database: str, folder: Path) -> Iterator[Pooler]:
    """Run a pooler before the database of the server whose superuser has the address `admin`."""
    pooler = Pooler(port=free_port(), database=database)
    account = accounts.for_servers()
    folder.mkdir(mode=0o700)
    _write(pooler, admin=admin, folder=folder)
    for path in (folder, *folder.iterdir()):
        account.own(path)
    process = subprocess.Popen([program(), folder / "ini"], cwd="/", stderr=subprocess.DEVNULL, **account.arguments())
    try:
        until(pooler.ready, seconds=20, what=f"a pooler that answers ({(folder / 'log')})")
        yield pooler
    finally:
        process.send_signal(signal.SIGTERM)  # at once, whoever is connected
        process.wait(10)


def _write(pooler: Pooler, *, admin: str, folder: Path) -> None:
    parts = conninfo_to_dict(admin)
    server = " ".join(f"{key}={parts[key]}" for key in ("host", "port") if parts.get(key))
    users = {logins.role(login): password for login, password in databases.PASSWORDS.items()} | {ADMIN: ADMIN}
    (folder / "users").write_text("".join(f'"{name}" "{password}"\n' for name, password in users.items()))
    (folder / "ini").write_text(
        CONFIGURATION.format(database=pooler.database, server=server, port=pooler.port, folder=folder, admin=ADMIN)
    )
