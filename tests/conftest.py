"""Fixtures that every test may use: an empty database, and a connection as each login."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.test import override_settings
from psycopg_pool import ConnectionPool

from tests import databases, lending, plugin, trap

if TYPE_CHECKING:
    from tests.agent.batches import Desk

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="session", autouse=True)
def _django_reads_for_real(django_db_blocker: Any) -> Iterator[None]:
    """Let Django reach the database: no test is wrapped in a transaction that is rolled back."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session", autouse=True)
def _passwords_cost_nothing() -> Iterator[None]:
    """Hash passwords fast: what makes guessing them slow made half of the time of a test that needs a person."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(scope="session", autouse=True)
def _what_was_lent_is_closed() -> Iterator[None]:
    """Close the connections that tests shared."""
    yield
    lending.close()


@pytest.fixture(autouse=True)
def _nothing_is_contacted_in_a_transaction() -> Iterator[None]:
    """Fail a test in which something but PostgreSQL was contacted in a transaction, here or in a worker that it started."""
    yield
    assert not (caught := trap.caught(plugin.FOLDER)), caught


@pytest.fixture(scope="session")
def superuser() -> Iterator[Connection]:
    """Return a superuser's connection to this process's database."""
    with psycopg.connect(databases.address(admin=plugin.ADMIN, database=plugin.DATABASE), autocommit=True) as conn:
        yield conn


@pytest.fixture
def database(superuser: Connection) -> None:
    """Give the test an empty database."""
    databases.empty(superuser)


@pytest.fixture
def connect(database: None) -> Iterator[Callable[[str], Connection]]:
    """Return a function that lends an autocommit connection as a login; all are given back after the test."""
    with ExitStack() as stack:
        yield lambda login: stack.enter_context(lending.connection(login))


@pytest.fixture
def owner(connect: Callable[[str], Connection]) -> Connection:
    """Return a connection as owner."""
    return connect("owner")


@pytest.fixture
def web(connect: Callable[[str], Connection]) -> Connection:
    """Return a connection as web."""
    return connect("web")


@pytest.fixture
def agent(connect: Callable[[str], Connection]) -> Connection:
    """Return a connection as agent."""
    return connect("agent")


@pytest.fixture
def outbox(connect: Callable[[str], Connection]) -> Connection:
    """Return a connection as outbox."""
    return connect("outbox")


@pytest.fixture
def keeper(connect: Callable[[str], Connection]) -> Connection:
    """Return a connection as keeper."""
    return connect("keeper")


@pytest.fixture
def agent_pool(database: None) -> "Iterator[ConnectionPool[Connection]]":
    """Return a pool of connections as agent."""
    with lending.pool("agent") as pool:
        yield pool


@pytest.fixture
def desk(agent_pool: "ConnectionPool[Connection]", owner: Connection) -> "Desk":
    """Return a customer with €50.00 of credit, and a thread held with fence 1."""
    from tests.agent.batches import Desk, hold_thread, make_customer

    return Desk(pool=agent_pool, owner=owner, customer=make_customer(owner, credit_minor=5000), thread=hold_thread(owner))
