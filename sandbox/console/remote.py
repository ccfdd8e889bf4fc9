"""The control API of this instance's Stripe sandbox over HTTP, with time-outs: the page knows nothing that it did not say."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from django.conf import settings

from sandbox.supervisor import instances

CONNECT, READ, CHANGE = 2, 5, 20  # seconds: to connect, until a look is answered, until a change: a clock may jump far
Json = dict[str, Any]


class NoAnswer(Exception):
    """The Stripe sandbox does not answer."""


class Refused(Exception):
    """The Stripe sandbox will not do it; the text is its own sentence."""


class Remote:
    """One conversation with the sandbox. Its key is that of the instance, never a real one."""

    def __init__(self, *, base: str, key: str) -> None:
        self._base = base.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, and no ~/.netrc that would replace the key
        self._session.headers["Authorization"] = f"Bearer {key}"

    def get(self, what: str, **query: Any) -> Json:
        """Return what the control API says; raise NoAnswer or Refused."""
        return self._ask("GET", what, params={name: value for name, value in query.items() if value is not None})

    def post(self, what: str, wish: Mapping[str, Any]) -> Json:
        """Return what it says to a wish; raise NoAnswer or Refused."""
        return self._ask("POST", what, json=wish)

    def delete(self, what: str, **query: Any) -> Json:
        """Return what is left; raise NoAnswer or Refused."""
        return self._ask("DELETE", what, params=query)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _ask(self, method: str, what: str, **more: Any) -> Json:
        address, patience = f"{self._base}/_sandbox/{what}", (CONNECT, READ if method == "GET" else CHANGE)
        try:
            answer = self._session.request(method, address, timeout=patience, allow_redirects=False, **more)
            found: Json = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise NoAnswer(type(error).__name__) from error
        if answer.status_code != 200:
            raise Refused(str(found.get("error", f"The Stripe sandbox answered {answer.status_code}.")))
        return found


@contextmanager
def connected() -> Iterator[Remote]:
    """Give the Stripe sandbox of the instance; a key or an address of the real Stripe counts as none. Raise NoAnswer."""
    found = instances.read(settings.DATA_DIR).get("stripe") or {}
    base, key = str(found.get("api_base", "")), str(found.get("api_key", ""))
    if not base.startswith("http://127.0.0.1:") or not key.startswith("sk_test_"):
        raise NoAnswer("there is none")
    remote = Remote(base=base, key=key)
    try:
        yield remote
    finally:
        remote.close()
