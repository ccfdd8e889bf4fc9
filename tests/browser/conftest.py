"""Fixtures of the tests that work in an office on the running instance."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.office import Office
from tests.pages import Complaints, Pages, launched
from tests.stack import Stack


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return one Chromium for all modules in here: none of them calls an asynchronous view in its own process."""
    with launched() as found:
        yield found


@pytest.fixture(scope="package")
def pages(browser: Browser) -> Pages:
    """Return the pages that tests are lent; they go with the browser."""
    return Pages(browser)


@pytest.fixture
def office(stack: Stack, complaints: Complaints, cookies: dict[str, Any], pages: Pages) -> Iterator[Office]:
    """Return the office; what it opened is closed after the test."""
    made = Office(stack=stack, cookies=cookies, pages=pages, complaints=complaints)
    with made.opened:
        yield made
        made.leave()
