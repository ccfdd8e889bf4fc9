"""Fixtures of the tests that work in an office on the running instance."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.office import Office, Pages
from tests.stack import Complaints, Stack


@pytest.fixture(scope="session")
def cookies() -> dict[str, Any]:
    """Return who is logged in; a person logs in once in a run."""
    return {}


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Pages:
    """Return the pages that tests share; they go with the browser."""
    return Pages()


@pytest.fixture
def office(stack: Stack, browser: Browser, complaints: Complaints, cookies: dict[str, Any], pages: Pages) -> Iterator[Office]:
    """Return the office; what it opened is closed after the test."""
    made = Office(stack=stack, browser=browser, cookies=cookies, pages=pages, complaints=complaints)
    with made.opened:
        yield made
        made.leave()
