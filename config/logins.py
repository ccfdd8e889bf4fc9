"""The database logins: made by a superuser (or a role that may create roles), granted by the owner."""

from pathlib import Path
from typing import Any

from psycopg import Connection, sql

NAMES = ("owner", "web", "agent", "outbox", "keeper")
GRANTS = Path(__file__).with_name("logins.sql")


def role(login: str) -> str:
    """Return the PostgreSQL role of a login."""
    return f"backstop_{login}"


def make_roles(conn: Connection[Any], *, passwords: dict[str, str]) -> None:
    """Create the five logins or set their passwords; `conn` may create roles."""
    for login in NAMES:
        known = conn.execute("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s", (role(login),)).fetchone()
        verb = "ALTER" if known else "CREATE"
        conn.execute(
            sql.SQL(verb + " ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOBYPASSRLS PASSWORD {}").format(
                sql.Identifier(role(login)), sql.Literal(passwords[login])
            )
        )


def make_database(conn: Connection[Any], *, name: str, template: str | None = None) -> None:
    """Create a database that belongs to the owner login; nobody may make temporary tables in it."""
    clone = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
    conn.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(role("owner"))) + clone)
    conn.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
    for login in NAMES:
        conn.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(name), sql.Identifier(role(login))))


def grant(conn: Connection[Any]) -> None:
    """Apply config/logins.sql in one transaction; `conn` is the owner's."""
    with conn.transaction():
        conn.execute(GRANTS.read_text())  # type: ignore[call-overload]  # a file of ours, not a literal


def make_partitions(conn: Connection[Any], *, ahead: int = 3) -> None:
    """Make this month's partitions and `ahead` more; `conn` is the owner's or the keeper's."""
    conn.execute("SELECT public.ledger_make_partitions(%s)", (ahead,))
