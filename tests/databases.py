"""The test databases: a template that the owner migrated and granted, and one clone a test process."""

import atexit
import contextlib
import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from config import logins

BASE = Path(__file__).resolve().parent.parent
PASSWORDS = dict.fromkeys(logins.NAMES, "only-for-tests")


def address(*, admin: str, database: str, login: str | None = None) -> str:
    """Return the address of a database as a login, or as the superuser itself."""
    parts: dict[str, Any] = dict(conninfo_to_dict(admin), dbname=database)
    if login:
        parts |= {"user": logins.role(login), "password": PASSWORDS[login]}
    return as_url(parts)


def as_url(parts: dict[str, Any]) -> str:
    """Return connection parameters as a postgresql:// address."""
    user, password = parts.get("user", ""), parts.get("password", "")
    who = quote(user, safe="") + (":" + quote(password, safe="") if password else "")
    rest = "&".join(f"{key}={quote(str(parts[key]), safe='')}" for key in ("host", "port") if parts.get(key))
    return f"postgresql://{who}@/{parts['dbname']}?{rest}"


def version() -> str:
    """Return a name for the schema as it is now, with the partitions of this month: the template is made again for another."""
    files = sorted([*BASE.glob("*/migrations/*.py"), *BASE.glob("*/sql/*.sql"), logins.GRANTS])
    return f"{datetime.now(UTC):%Y%m}_" + hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keep two test processes from making the template at once."""
    folder = BASE / "var" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "template.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_template(admin: str) -> str:
    """Return the name of the migrated template database, making it when it is not there."""
    name = f"backstop_template_{version()}"
    with alone(), psycopg.connect(admin, autocommit=True) as conn:
        logins.make_roles(conn, passwords=PASSWORDS)
        if not conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            making = f"making_{secrets.token_hex(4)}"
            logins.make_database(conn, name=making)
            migrate(address(admin=admin, database=making, login="owner"))
            conn.execute(f'ALTER DATABASE "{making}" RENAME TO "{name}"')
    return name


def migrate(owner: str) -> None:
    """Migrate and grant as the owner, in a process of its own: this one logs in as web."""
    env = os.environ | {"DATABASE_URL": owner, "BACKSTOP_LOGIN": "owner"}
    run = [sys.executable, BASE / "manage.py", "grant", "--migrate"]
    subprocess.run(run, check=True, env=env, stdout=subprocess.DEVNULL, cwd=BASE)


def clone(admin: str) -> str:
    """Return the name of a fresh copy of the template."""
    template = make_template(admin)
    name = f"backstop_test_{os.getpid()}_{secrets.token_hex(3)}"
    with alone(), psycopg.connect(admin, autocommit=True) as conn:
        logins.make_database(conn, name=name, template=template)
    return name


def drop(admin: str, name: str) -> None:
    """Remove a test database, whoever is still connected."""
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


KEPT = (
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
    "checkpoint_migrations",
)


def empty(conn: "psycopg.Connection[Any]") -> None:
    """Empty our tables and let every numbering begin again, in the database of the superuser's connection `conn`."""
    _janitor(conn).execute("SELECT pg_temp.empty_tables()")


@cache
def _janitor(conn: "psycopg.Connection[Any]") -> "psycopg.Connection[Any]":
    """Return a session with a function that empties them, and for which no trigger and no foreign key counts.

    Rows are deleted where there are some: new files for tables and indexes, which TRUNCATE makes, cost more than most tests. The
    function plans its statements once, unless a session lets triggers count again.
    """
    session = psycopg.connect(conn.info.dsn, autocommit=True)
    atexit.register(session.close)
    session.execute("SET session_replication_role = replica")
    steps = [f"IF EXISTS (SELECT FROM {name}) THEN DELETE FROM {name}; END IF;" for name in _tables(conn)]
    steps += [f"PERFORM setval('{name}', 1, false);" for name in _numberings(conn)]
    session.execute(f"CREATE FUNCTION pg_temp.empty_tables() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {' '.join(steps)} END $$")
    return session


def renew(conn: "psycopg.Connection[Any]") -> None:
    """Give our tables new files, for a test of how they are read: deleted rows are in the way, and counted by the planner."""
    conn.execute("TRUNCATE " + ", ".join(_tables(conn)) + " CASCADE")


@cache
def _tables(conn: "psycopg.Connection[Any]") -> list[str]:
    """Return the names of the tables that tests fill."""
    found = conn.execute(
        "SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL(%s)",
        (list(KEPT),),
    ).fetchall()
    return [name for (name,) in found]


def _numberings(conn: "psycopg.Connection[Any]") -> list[str]:
    """Return the names of their sequences."""
    found = conn.execute(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.deptype IN ('i', 'a')"
        " JOIN pg_class t ON t.oid = d.refobjid WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace"
        " AND t.relname <> ALL(%s)",
        (list(KEPT),),
    ).fetchall()
    return [name for (name,) in found]
