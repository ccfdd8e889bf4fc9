"""Browsers, and their pages, that one test after another is lent: what they complained about fails the test."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, sync_playwright

from tests import chromium


@contextmanager
def launched() -> Iterator[Browser]:
    """Launch a Chromium. While it is there, asynchronous views can't be called in this process."""
    found = chromium.provide()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.program, args=list(found.arguments), env={**os.environ, **found.environment}
        )
        yield browser
        browser.close()


def profile(browser: Browser, **options: Any) -> BrowserContext:
    """Return a browser profile of its own, for one person; close it. Nothing moves in it: painting it again costs time."""
    return browser.new_context(**({"reduced_motion": "reduce"} | options))


class Complaints(list[str]):
    """What the browser complained about: console errors (a violated content security policy is one) and script errors."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[str] = []

    def expect(self, part: str) -> None:
        """Let complaints pass that contain the text, such as the status of a page that must be refused."""
        self.expected.append(part)

    def watch(self, page: Page) -> None:
        """Collect a page's complaints."""
        page.on("console", self._heard)
        page.on("pageerror", self._broke)

    def unwatch(self, page: Page) -> None:
        """Collect them no more."""
        page.remove_listener("console", self._heard)
        page.remove_listener("pageerror", self._broke)

    def _broke(self, error: Any) -> None:
        self.append(str(error))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.append(f"{message.text} ({message.location.get('url')})")

    def unexpected(self) -> list[str]:
        """Return what nobody expected."""
        return [text for text in self if not any(part in text for part in self.expected)]


class Pages:
    """The pages of one browser, each in a profile of its own: a person.

    A new one is a new process of the browser, which costs more than most tests do with it. So one that a test is done with is
    lent again, as if it were new, to whoever asks for a profile with the same options.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, list[Page]] = defaultdict(list)

    @contextmanager
    def lent(self, complaints: Complaints, *, cookies: Sequence[Any] = (), again: bool = True, **options: Any) -> Iterator[Page]:
        """Lend a page; `again` is false for one that the test leaves with something that can't be taken back, as a clock."""
        idle = self._idle[repr(sorted(options.items()))]
        page = idle.pop() if idle and again else profile(self._browser, **options).new_page()
        page.context.add_cookies(list(cookies))
        complaints.watch(page)
        yield page
        complaints.unwatch(page)
        if again and _is_as_new(page, options):
            idle.append(page)
        else:
            page.context.close()


def _is_as_new(page: Page, options: dict[str, Any]) -> bool:
    """Make a page as it was lent; say whether that worked: its server may have gone."""
    if page.is_closed():
        return False
    for other in page.context.pages:
        if other != page:
            other.close()
    page.unroute_all()
    page.context.clear_cookies()
    if size := options.get("viewport", {"width": 1280, "height": 720}):
        page.set_viewport_size(size)
    page.emulate_media(color_scheme=options.get("color_scheme", "light"), reduced_motion="reduce")
    try:
        page.goto("/healthz")
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    except Error:
        return False
    return True


def log_in(page: Page, name: str, password: str) -> None:
    """Log in as a person does."""
    page.goto("/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_url(lambda url: "/login/" not in url)
