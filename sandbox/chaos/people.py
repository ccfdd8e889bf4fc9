"""People at an instance, over HTTP: what a broken server did not answer is sent again, under the same id."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import requests

from sandbox.chaos.places import Place

TIMEOUT = (3, 15)  # seconds: to connect, to answer
BETWEEN = 0.3
PATIENCE = 90.0  # seconds without any answer once faults are over, far above what any part takes to come back
OPEN = re.compile(r'href="/escalations/(\d+)/["?]')
BUTTON = re.compile(r'name="kind" value="(\w+)"(?P<more>[^>]*)>')
SHOWN = re.compile(r'name="(revision|preview)" value="(\d+)"')  # what a reviewer signs
DISAGREEMENT = re.compile(r'href="/reconcile/(\d+)/["?]')
EXIT = re.compile(r'name="kind" value="(?P<kind>\w+)"(?P<more>[^>]*)>')
UNDO = re.compile(r'/undo/".*?name="message" value="(\d+)"', re.DOTALL)


class Unanswered(Exception):
    """The web server gave no answer for `PATIENCE` seconds although faults were over."""


@dataclass(kw_only=True)
class Promises:
    """What the server told people that it has: it must be there afterwards. And what it should never have answered."""

    messages: dict[UUID, int] = field(default_factory=dict)  # id → conversation
    decisions: set[int] = field(default_factory=set)  # escalations
    conversations: set[int] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    calm_since: float | None = None  # when faults were over (monotonic); until then anything is waited for


class Person:
    """Somebody who is logged in."""

    def __init__(self, place: Place, role: str, *, promises: Promises) -> None:
        self._place, self._role, self.promises = place, role, promises
        self._http = requests.Session()
        self._http.trust_env = False

    def log_in(self) -> None:
        """Log in."""
        self._send("GET", "/login/")
        name, password = self._place.login(self._role)
        answer = self._send("POST", "/login/", data={"username": name, "password": password})
        self._expect(answer, 302)

    def again(self) -> "Person":
        """Return the same person at another window, logged in there too."""
        person = Person(self._place, self._role, promises=self.promises)
        person._http.cookies.update(self._http.cookies)
        return person

    def begin(self, customer: int) -> int | None:
        """Begin a conversation about a customer and return its number; None if that was refused."""
        answer = self._send("POST", "/api/conversations/", json={"subject": customer})
        if not self._expect(answer, 201):
            return None
        number = int(answer.json()["id"])
        self.promises.conversations.add(number)
        return number

    def say(self, conversation: int, text: str, *, twice: bool = False) -> None:
        """Send a message; a full queue refuses it."""
        message = uuid4()
        for _ in range(1 + twice):
            path = f"/api/conversations/{conversation}/messages/"
            answer = self._send("POST", path, json={"id": str(message), "text": text})
            if self._expect(answer, 200, 201, 409) and answer.status_code != 409:
                self.promises.messages[message] = conversation

    def press(self, conversation: int, button: str) -> None:
        """Press Stop or Resume; it may come too late."""
        self._expect(self._send("POST", f"/api/conversations/{conversation}/{button}/"), 204, 409)

    def undo(self, conversation: int) -> None:
        """Take back whatever was not sent yet, while there is time for it; it may come too late."""
        for message in UNDO.findall(self._send("GET", f"/conversations/{conversation}/").text):
            answer = self._send("POST", f"/api/conversations/{conversation}/undo/", json={"message": int(message)})
            self._expect(answer, 204, 409)

    def let_undo(self, seconds: int) -> None:
        """Have charges wait before they are sent, so that they can be taken back; that may be so already."""
        given = {"topic": "payment.charge", "seconds": str(seconds), "reason": "Chaos."}
        self._expect(self._send("POST", "/limits/send-after/", data=given), 302, 409, 422)

    def busy(self, conversation: int) -> bool:
        """Say whether the agent works in the conversation or has something to do there."""
        answer = self._send("GET", f"/api/conversations/{conversation}/")
        return self._expect(answer, 200) and bool(answer.json()["standing"]["busy"])

    def undecided(self) -> list[int]:
        """Return the first escalations of the inbox."""
        return sorted({int(number) for number in OPEN.findall(self._send("GET", "/escalations/").text)})

    def decide(self, escalation: int, *, choose: Callable[[list[str]], str]) -> None:
        """Take one of the decisions that its page offers; somebody else, or the system, may have been faster."""
        page = self._send("GET", f"/escalations/{escalation}/")
        offered = sorted({found[1] for found in BUTTON.finditer(page.text) if "disabled" not in found["more"]})
        if not self._expect(page, 200) or not offered:
            return
        given = {"kind": choose(offered), "text": "Leave it as it is.", "reason": "other", **dict(SHOWN.findall(page.text))}
        answer = self._send("POST", f"/escalations/{escalation}/decide/", data=given)
        if self._expect(answer, 302, 409) and answer.status_code == 302:
            self.promises.decisions.add(escalation)

    def scan(self) -> None:
        """Have everything compared."""
        self._expect(self._send("POST", "/reconcile/scan/"), 302)

    def disagreements(self) -> list[int]:
        """Return what waits at the reconcile desk."""
        return sorted({int(number) for number in DISAGREEMENT.findall(self._send("GET", "/reconcile/").text)})

    def settle(self, escalation: int, *, choose: Callable[[list[str]], str]) -> None:
        """Take the exit that fits the evidence, or else one of those that are offered; somebody may have been faster."""
        page = self._send("GET", f"/reconcile/{escalation}/")
        offered = {found["kind"]: found["more"] for found in EXIT.finditer(page.text) if "disabled" not in found["more"]}
        if not self._expect(page, 200) or not offered:
            return
        fitting = [kind for kind, more in offered.items() if "checked" in more]
        given = {"kind": fitting[0] if fitting else choose(sorted(offered)), "text": "Settled by chaos."}
        self._expect(self._send("POST", f"/reconcile/{escalation}/choose/", data=given), 302, 409)

    def _expect(self, answer: requests.Response, *known: int) -> bool:
        """Say whether the answer is one of these; note any other."""
        if answer.status_code in known and "/login/" not in answer.headers.get("Location", ""):
            return True
        request = answer.request
        self.promises.odd.append(f"{request.method} {request.path_url}: {answer.status_code} {answer.text[:200]!r}")
        return False

    def _send(self, method: str, path: str, **more: Any) -> requests.Response:
        began = time.monotonic()
        while True:
            token = {"X-CSRFToken": self._http.cookies.get("csrftoken") or ""}
            try:
                address = self._place.address + path
                answer = self._http.request(method, address, headers=token, timeout=TIMEOUT, allow_redirects=False, **more)
                if answer.status_code < 500:
                    return answer
            except requests.RequestException:
                self._http.close()  # a connection that broke is not used again
            calm = self.promises.calm_since
            if calm is not None and time.monotonic() > max(began, calm) + PATIENCE:
                raise Unanswered(f"{method} {path} got no answer for {PATIENCE:.0f} s.")
            time.sleep(BETWEEN)
