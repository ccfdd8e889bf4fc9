"""A pytest plugin, loaded before Django's settings: this process gets its own database and logs in as web."""

import atexit
import os
import shutil
import tempfile

import pytest

from tests import databases, servers, trap

ADMIN = servers.superuser()
DATABASE = databases.clone(ADMIN)
FOLDER = tempfile.mkdtemp(prefix="backstop-test-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

os.environ |= {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "DATABASE_URL": databases.address(admin=ADMIN, database=DATABASE, login="web"),
    "BACKSTOP_LOGIN": "web",
    "REDIS_URL": servers.broker(),
    "BACKSTOP_DATA": FOLDER,
    "DJANGO_SECRET_KEY": "only-for-tests",
    "DJANGO_ALLOW_ASYNC_UNSAFE": "1",  # Playwright's loop runs in the thread of the test
    "LANGGRAPH_STRICT_MSGPACK": "true",
    "NO_PROXY": "127.0.0.1,localhost",
}


trap.install(FOLDER)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Drop this process's database."""
    databases.drop(ADMIN, DATABASE)
