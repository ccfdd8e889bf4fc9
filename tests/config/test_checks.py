"""A process whose database or login is not what it must be ends with one sentence."""

import os
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from config import checks
from tests import databases, forks, plugin

SUPERUSER = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE)
WEB = ("-m", "uvicorn", "config.asgi:application", "--port", "1")
WORKER = ("-m", "celery", "-A", "config.celery", "worker", "-P", "solo", "-Q", "keeper")


def found(settings: Any, *, url: str, login: str = "web") -> list[str]:
    """Return what the check says of a login, as `id sentence`."""
    settings.DATABASE_URL, settings.LOGIN = url, login
    return [f"{message.id} {message.msg}" for message in checks.check_database(None, databases=["default"])]


@pytest.mark.parametrize("login", ["web", "agent", "outbox", "keeper"])
def test_our_logins_are_safe(settings: Any, login: str) -> None:
    assert found(settings, url=databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login), login=login) == []


def test_a_superuser_is_refused(settings: Any) -> None:
    (sentence,) = found(settings, url=SUPERUSER)
    assert sentence.startswith("config.E003 The database login postgres is a superuser")
    assert sentence.endswith("give this process the login backstop_web.")


def test_the_owner_is_refused(settings: Any) -> None:
    (sentence,) = found(settings, url=databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="owner"))
    assert sentence == "config.E003 The database login backstop_owner is the owner: give this process the login backstop_web."


def test_whoever_bypasses_row_level_security_is_refused(settings: Any, superuser: "psycopg.Connection[Any]") -> None:
    role = f"bypasser_{os.getpid()}"
    superuser.execute(f"CREATE ROLE {role} LOGIN BYPASSRLS PASSWORD 'x'")
    superuser.execute(f"GRANT CONNECT ON DATABASE {plugin.DATABASE} TO {role}")
    try:
        url = SUPERUSER.replace("//postgres@", f"//{role}:x@")
        assert found(settings, url=url) == [
            f"config.E003 The database login {role} is BYPASSRLS: give this process the login backstop_web."
        ]
    finally:
        superuser.execute(f"DROP OWNED BY {role}")
        superuser.execute(f"DROP ROLE {role}")


def test_a_login_whose_transactions_have_no_limit_is_named(settings: Any) -> None:
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="agent")
    unlimited = f"{address}&options={quote('-c idle_in_transaction_session_timeout=0')}"
    [sentence] = found(settings, url=unlimited, login="agent")
    assert sentence.startswith("config.W001 Transactions of the login backstop_agent have no time limit")


def test_the_owner_may_migrate(settings: Any) -> None:
    assert (
        found(settings, url=databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="owner"), login="owner") == []
    )


def test_an_old_server_is_refused(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "OLDEST", 99)
    (sentence,) = found(settings, url=settings.DATABASE_URL)
    assert sentence == "config.E002 PostgreSQL 18 is too old: Backstop needs 99 or newer."


def test_a_server_that_does_not_answer_is_told(settings: Any) -> None:
    (sentence,) = found(settings, url="postgresql://backstop_web@127.0.0.1:1/none")
    assert sentence.startswith("config.E001 PostgreSQL does not answer (")


@pytest.mark.parametrize("command", [WEB, WORKER], ids=["web", "worker"])
def test_a_process_with_the_wrong_login_ends_before_it_works(command: tuple[str, ...]) -> None:
    env = os.environ | {"DATABASE_URL": SUPERUSER, "BACKSTOP_LOGIN": "keeper", "BACKSTOP_LOG_LEVEL": "ERROR"}
    done = forks.run(*command, env=env, timeout=60)
    assert done.returncode != 0
    assert "The database login postgres is a superuser" in done.stderr
    assert "Traceback" not in done.stderr
