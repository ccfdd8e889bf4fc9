"""A real instance for tests, as a person starts it, and a browser that looks at it."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page

from sandbox.supervisor import files, reports
from tests import forks, numbers
from tests.pages import Complaints, Pages, launched, log_in

BASE = Path(__file__).resolve().parent.parent
# What the test process says about its own database and broker is not for an instance of its own.
OURS = ("DATABASE_URL", "REDIS_URL", "STRIPE_API_KEY", "DJANGO_SECRET_KEY", "BACKSTOP_DATA", "BACKSTOP_LOGIN", "BACKSTOP_MODEL")


def manage(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run `manage.py` as a person would, with `more` in the environment, and return what it printed."""
    env = {name: value for name, value in os.environ.items() if name not in OURS} | more
    return forks.run("manage.py", *words, env=env)


@dataclass(frozen=True)
class Stack:
    """An instance that runs: where it is, who may log in (by role), and its database and provider."""

    data: Path
    content: dict[str, Any] = field(repr=False)

    @property
    def address(self) -> str:
        """Return the web server's address."""
        return f"http://127.0.0.1:{self.content['web']['port']}"

    @property
    def provider(self) -> str:
        """Return the Stripe sandbox's address."""
        return str(self.content["stripe"]["api_base"])

    @property
    def logins(self) -> dict[str, tuple[str, str]]:
        """Return name and password for each role, and for the second of those of whom there are two, such as `admin2`."""
        second = {login["name"]: (login["name"], login["password"]) for login in self.content["logins"]}
        first = {login["role"]: second[login["role"]] for login in self.content["logins"]}
        return second | first

    def connect(self, login: str) -> "psycopg.Connection[Any]":
        """Return an autocommit connection as owner, web, agent, outbox, keeper or superuser; close it."""
        return psycopg.connect(self.content["database"][login], autocommit=True)

    def status(self) -> dict[str, Any]:
        """Return what `manage.py status --json` says."""
        return reports.status(self.data)

    def pid(self, part: str) -> int | None:
        """Return the pid of one part, such as `agent`, or None while it is down."""
        return next(line["pid"] for line in self.status()["parts"] if line["name"] == part)


def up(data: Path, *words: str, **more: str) -> Stack:
    """Start an instance on a free port, or the one that it had, and return it when everything works."""
    known = files.read(data / "instance.json")
    port = () if known or "--port" in words else ("--port", "0")
    done = manage("up", "--data", str(data), "--detach", *port, *words, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return Stack(data=data, content=files.read(data / "instance.json"))


def down(data: Path) -> None:
    """Stop the instance."""
    done = manage("down", "--data", str(data))
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def open_folder() -> Iterator[Path]:
    """Return a directory that the account of PostgreSQL can get to, unlike pytest's own; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="backstop-stack-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103  # the secrets in it have modes of their own
        yield Path(folder)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Return one instance that every test of this run shares; its data are the demonstration's."""
    with open_folder() as folder:
        try:
            running = up(folder / "instance")
            with running.connect("owner") as conn:
                numbers.allow_repeats(conn)
            yield running
        finally:
            down(folder / "instance")


@pytest.fixture
def stack_connect(stack: Stack) -> "Iterator[Callable[[str], psycopg.Connection[Any]]]":
    """Return a function that connects to the instance's database as a login; all are closed after the test."""
    with ExitStack() as opened:
        yield lambda login: opened.enter_context(stack.connect(login))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a Chromium. A module ends it: while it is there, asynchronous views can't be called in this process."""
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Pages:
    """Return the pages that tests are lent; they go with the browser."""
    return Pages(browser)


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Fail the test for whatever its pages complained about, unless it was expected."""
    found = Complaints()
    yield found
    assert not found.unexpected()


@pytest.fixture
def lend(pages: Pages, complaints: Complaints) -> Iterator[Callable[..., Page]]:
    """Return a function that lends a page in a browser profile with the given options: a person."""
    with ExitStack() as lent:
        yield lambda **options: lent.enter_context(pages.lent(complaints, **options))


@pytest.fixture
def new_page(stack: Stack, lend: Callable[..., Page]) -> Callable[[], Page]:
    """Return a function that opens a page in a browser profile of its own: a second person."""
    return lambda: lend(base_url=stack.address)


@pytest.fixture
def page(new_page: Callable[[], Page]) -> Page:
    """Return a page at the instance's address; nobody is logged in."""
    return new_page()


@pytest.fixture(scope="session")
def cookies() -> dict[str, Any]:
    """Return who is logged in at the running instance; a person logs in once in a run."""
    return {}


@pytest.fixture
def login(stack: Stack, cookies: dict[str, Any]) -> Callable[[Page, str], None]:
    """Return a function that brings a person, such as `support`, to the first page that they see when they are logged in."""

    def bring(page: Page, role: str) -> None:
        page.context.add_cookies(cookies.get(role, []))
        page.goto("/")
        if "/login/" in page.url:
            log_in(page, *stack.logins[role])
            cookies[role] = page.context.cookies()

    return bring
