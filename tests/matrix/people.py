"""People at an instance, over HTTP: a request that a killed web server did not answer is sent again."""

from contextlib import suppress
from typing import Any, Self

import httpx

from tests.stack import Stack
from tests.waiting import until

PATIENCE = 60.0  # seconds for a web server that is started again
BETWEEN = 0.2


class Person:
    """Somebody who is logged in."""

    def __init__(self, stack: Stack, role: str) -> None:
        self._http = httpx.Client(base_url=stack.address, timeout=15)
        name, password = stack.logins[role]
        self._send("GET", "/login/")
        answer = self._send("POST", "/login/", data={"username": name, "password": password})
        assert answer.status_code == 302, f"{role} could not log in: {answer.status_code}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def begin(self, customer: int) -> int:
        """Begin a conversation about a customer and return its number."""
        answer = self._send("POST", "/api/conversations/", json={"subject": customer})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    def say(self, conversation: int, text: str, *, message: str) -> None:
        """Send a message under an id of ours: said again, it is the same message."""
        path, body = f"/api/conversations/{conversation}/messages/", {"id": message, "text": text}
        answer = until(lambda: self._taken(path, body), seconds=PATIENCE, every=BETWEEN, what=path)
        assert answer.status_code in (200, 201), answer.text

    def _taken(self, path: str, body: dict[str, str]) -> httpx.Response | None:
        """Send it, and again while the agent stands still in a transaction with the message that was sent and not answered."""
        answer = self._send("POST", path, json=body)
        return None if answer.status_code == 503 else answer

    def look_again(self, escalation: int) -> None:
        """Ask for another preview."""
        answer = self._send("POST", f"/escalations/{escalation}/preview/")
        assert answer.status_code in (302, 409), f"{answer.status_code} for a preview of {escalation}"

    def approve(self, escalation: int, *, preview: int) -> None:
        """Sign what was proposed first, as a preview shows it; a signature that was taken but not answered is found taken."""
        shown = {"kind": "approve", "revision": 0, "preview": preview}
        answer = self._send("POST", f"/escalations/{escalation}/decide/", data=shown)
        assert answer.status_code in (302, 409), f"{answer.status_code} for the approval of {escalation}"

    def look_up(self, message: int) -> None:
        """Have the outbox ask the provider about a message; it may be asked for already."""
        answer = self._send("POST", f"/outbox/{message}/look-up/", data={"reason": "The customer called."})
        assert answer.status_code in (302, 409), f"{answer.status_code} for a look-up of {message}"

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        def answer() -> httpx.Response | None:
            token = self._http.cookies.get("csrftoken", "")
            with suppress(httpx.TransportError):
                return self._http.request(method, path, headers={"X-CSRFToken": token}, **more)
            return None

        found = until(lambda: [given for given in [answer()] if given is not None], seconds=PATIENCE, every=BETWEEN, what=path)
        return found[0]
