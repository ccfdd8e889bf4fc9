"""Bring the instance's database to where its processes can use it: a server, five logins, tables, grants."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from sandbox.servers import CannotStart, postgres

NAME = "backstop"
OLDEST = 16


def make(server: postgres.Server) -> str:
    """Return the superuser's address of the embedded database, made when it is not there."""
    with psycopg.connect(server.superuser_url(), autocommit=True) as conn:
        if not conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (NAME,)).fetchone():
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
    return server.superuser_url(NAME)


def check(url: str) -> None:
    """Refuse a server of somebody else that is too old, does not answer, or does not let this role make logins."""
    try:
        conn = psycopg.connect(url, connect_timeout=10, autocommit=True)
    except psycopg.OperationalError as error:
        raise CannotStart(f"The PostgreSQL of DATABASE_URL does not answer ({first_line(error)}).") from None
    except psycopg.ProgrammingError:
        raise CannotStart("DATABASE_URL is not an address of PostgreSQL, such as postgresql://user:password@host/name.") from None
    with conn:
        if conn.info.server_version < OLDEST * 10000:
            raise CannotStart(f"PostgreSQL {conn.info.server_version // 10000} is too old: Backstop needs {OLDEST} or newer.")
        found = conn.execute("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user").fetchone()
        if not (found and found[0]):
            raise CannotStart("The role of DATABASE_URL may not create roles: Backstop makes its five logins with it.")


def as_login(url: str, *, role: str, password: str) -> str:
    """Return the same database's address for another role."""
    parts: dict[str, Any] = conninfo_to_dict(url)
    database = parts.pop("dbname", NAME)
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in parts.items() if key not in ("user", "password"))
    return f"postgresql://{quote(role, safe='')}:{quote(password, safe='')}@/{quote(database, safe='')}?{query}"


def works(url: str) -> bool:
    """Say whether a login can log in."""
    try:
        with psycopg.connect(url, connect_timeout=10):
            return True
    except psycopg.OperationalError:
        return False


def first_line(error: Exception) -> str:
    """Return what a driver's error says, without its lines of advice."""
    return str(error).strip().split("\n", 1)[0]


@dataclass(frozen=True)
class Content:
    """What is in the tables already; `people` are user names."""

    people: frozenset[str]
    customers: bool


def content(owner: str) -> Content:
    """Return what the owner sees."""
    with psycopg.connect(owner) as conn:
        people = frozenset(row[0] for row in conn.execute("SELECT username FROM public.auth_user"))
        found = conn.execute("SELECT EXISTS (SELECT 1 FROM public.billing_customer)").fetchone()
    return Content(people=people, customers=bool(found and found[0]))
