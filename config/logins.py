"""The database logins: made by a superuser (or a role that may create roles), granted by the owner."""

from pathlib import Path
from typing import Any

from psycopg import Connection, sql

from ledger import connections

NAMES = ("owner", "web", "agent", "outbox", "keeper")
GRANTS = Path(__file__).with_name("logins.sql")
# How long a process may keep a transaction open: idle, or at all. One that stops (a frozen machine, a debugger) keeps what
# it has locked until then; without a limit nobody could take its work over. The owner migrates, the keeper reads for long.
LIMITS = {"agent": ("10s", "10s"), "outbox": ("10s", "20s"), "web": ("10s", "60s")}
# Who says the same few things for ever: to plan a claim anew each time cost three times what the claim does.
PLANNED_ONCE = ("outbox",)


def role(login: str) -> str:
    """Return the PostgreSQL role of a login."""
    return f"backstop_{login}"


def make_roles(conn: Connection[Any], *, passwords: dict[str, str]) -> None:
    """Create the five logins or set their passwords; `conn` may create roles."""
    for login in NAMES:
        known = conn.execute("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s", (role(login),)).fetchone()
        # Only a superuser may name the powers of a role that exists; config/checks.py refuses a login that has any.
        verb = "ALTER ROLE {}" if known else "CREATE ROLE {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOBYPASSRLS"
        conn.execute(sql.SQL(verb + " LOGIN PASSWORD {}").format(sql.Identifier(role(login)), sql.Literal(passwords[login])))
        _limit(conn, login)
        if login in PLANNED_ONCE:
            conn.execute(sql.SQL("ALTER ROLE {} SET plan_cache_mode = force_generic_plan").format(sql.Identifier(role(login))))


def _limit(conn: Connection[Any], login: str) -> None:
    """Limit the login's transactions; before PostgreSQL 17 only those that are idle between two statements."""
    names = ("idle_in_transaction_session_timeout", *(["transaction_timeout"] if connections.can_limit(conn) else []))
    for name, limit in zip(names, LIMITS.get(login, ()), strict=False):
        statement = sql.SQL("ALTER ROLE {} SET {} = {}")
        conn.execute(statement.format(sql.Identifier(role(login)), sql.Identifier(name), sql.Literal(limit)))


def make_database(conn: Connection[Any], *, name: str, template: str | None = None) -> None:
    """Create a database that belongs to the owner login; nobody may make temporary tables in it."""
    clone = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
    conn.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(role("owner"))) + clone)
    open_to_logins(conn, name=name)


def adopt_database(conn: Connection[Any]) -> None:
    """Give the database that `conn` is in to the owner login; `conn` may create roles and owns the database."""
    name = str(conn.info.dbname)
    me = conn.execute("SELECT rolname, rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user").fetchone()
    if me and not me[1]:  # whoever gives something away must be allowed to act as the receiver
        conn.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role("owner")), sql.Identifier(me[0])))
    conn.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(role("owner"))))
    open_to_logins(conn, name=name)


def open_to_logins(conn: Connection[Any], *, name: str) -> None:
    """Let the five logins into a database, and nobody else."""
    conn.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
    for login in NAMES:
        conn.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(name), sql.Identifier(role(login))))


def grant(conn: Connection[Any]) -> None:
    """Apply config/logins.sql in one transaction; `conn` is the owner's."""
    with conn.transaction():
        conn.execute(GRANTS.read_text())
