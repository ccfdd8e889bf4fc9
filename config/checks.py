"""What must be true of the database before web or a worker does anything: checked by Django and at each process's start."""

import sys
from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.core import checks

from config import logins

OLDEST = 16
# What a worker is refused for. Django's other checks import every page, which took half of its start.
WORKERS = (checks.Tags.database, "agent", "ledger", "outbox")


@checks.register(checks.Tags.database)
def check_database(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse an old server, and a login that row-level security or grants would not bind."""
    if not databases or settings.LOGIN == "beat" or not settings.DATABASE_URL:
        return []
    try:
        with psycopg.connect(settings.DATABASE_URL, connect_timeout=10) as conn:
            return faults(conn)
    except psycopg.OperationalError as error:
        return [checks.Error(f"PostgreSQL does not answer ({str(error).strip().splitlines()[0]}).", id="config.E001")]


def faults(conn: "psycopg.Connection[Any]") -> list[checks.CheckMessage]:
    """Return what is wrong with the server or with this login."""
    version = conn.info.server_version // 10000
    if version < OLDEST:
        return [checks.Error(f"PostgreSQL {version} is too old: Backstop needs {OLDEST} or newer.", id="config.E002")]
    if settings.LOGIN in ("owner", "superuser"):
        return []
    found = conn.execute(
        "SELECT r.rolname, r.rolsuper, r.rolbypassrls,"
        " EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.relnamespace = 'public'::regnamespace"
        "         AND pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE'))"
        "  OR (SELECT pg_catalog.pg_has_role(r.oid, d.datdba, 'USAGE') FROM pg_catalog.pg_database d"
        "      WHERE d.datname = pg_catalog.current_database())"
        " FROM pg_catalog.pg_roles r WHERE r.rolname = current_user"
    ).fetchone()
    name, *powers = found or ("unknown", True, True, True)
    words = [word for word, has in zip(("a superuser", "BYPASSRLS", "the owner"), powers, strict=True) if has]
    sentence = f"The database login {name} is {' and '.join(words)}: give this process the login backstop_{settings.LOGIN}."
    return [checks.Error(sentence, id="config.E003")] if words else _unlimited(conn)


def _unlimited(conn: "psycopg.Connection[Any]") -> list[checks.CheckMessage]:
    """Warn when a process that stops could keep what it has locked for ever (config/logins.py)."""
    limit = conn.execute("SELECT pg_catalog.current_setting('idle_in_transaction_session_timeout')").fetchone()
    if settings.LOGIN not in logins.LIMITS or limit != ("0",):
        return []
    sentence = f"Transactions of the login {logins.role(settings.LOGIN)} have no time limit: run manage.py make_logins again."
    return [checks.Warning(sentence, id="config.W001")]


def stop_unless_safe(*, tags: Sequence[str] | None = None) -> None:
    """Run every check, or those with one of the tags, on the database too; end this process with a sentence for each error."""
    found = [message for message in checks.run_checks(tags=tags, databases=["default"]) if message.is_serious()]
    for message in found:
        sys.stderr.write(f"{message.msg}\n")
    if found:
        sys.exit(1)
