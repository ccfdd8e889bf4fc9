"""What happened after a button was pressed: steps in plain words, kept in this process, one act at a time.

The thread that carries an act out has a database connection of its own: it goes on while PostgreSQL is down.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import psycopg
import structlog
from django.utils import timezone

from agent import events
from agent.messages import Unsendable
from outbox import bell
from sandbox.breaking import demonstration, requests
from sandbox.breaking.demonstration import CannotStrike
from sandbox.breaking.requests import Request
from sandbox.demo.provider import NoProvider

log = structlog.get_logger()

Found = TypeVar("Found")
LOOK = 0.2  # seconds between two looks
ICONS = {
    "queued": "circle-dashed", "info": "eye", "sent": "send", "undone": "undo-2", "held": "timer", "applied": "check",
    "confirmed": "check-check", "uncertain": "circle-question-mark", "failed": "triangle-alert",
}  # fmt: skip


class Late(Exception):
    """What was waited for did not come; the text is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that happened; `state` is a colour and an icon of the pages."""

    at: datetime
    text: str
    state: str
    attempt: UUID | None = None  # whose evidence tells more

    @property
    def icon(self) -> str:
        """Return the icon's name."""
        return ICONS[self.state]


@dataclass(kw_only=True)
class Run:
    """One act at work or at its end. `thread` is the conversation's, if there is one."""

    act: str
    request: Request | None
    thread: str
    steps: list[Step] = field(default_factory=list)
    ended: bool = False
    since: datetime | None = None  # the database's clock when the request was sent
    heard: bool = True

    def tell(self, text: str, *, state: str = "info", attempt: UUID | None = None) -> None:
        """Add a step."""
        self.steps.append(Step(at=timezone.now(), text=text, state=state, attempt=attempt))

    def send(self) -> None:
        """Send the request, if whoever pressed the button may, and ring for the agent."""
        if self.request is None:
            return
        with demonstration.connect() as conn:
            row = conn.execute("SELECT clock_timestamp()").fetchone()
            self.since = row[0] if row else None
            requests.send(conn, self.request)
        events.publish(self.request.thread, "feed")
        self.heard = bell.ring("agent.drive", str(self.request.thread))
        self.tell(
            f"Asked the agent to bill {requests.words(self.request.month)}: {requests.CALLS} calls in one batch.", state="sent"
        )


_lock = threading.Lock()
_latest: dict[str, Run] = {}


def latest() -> dict[str, Run]:
    """Return the last run of each act, by the act's name."""
    return dict(_latest)


def busy() -> bool:
    """Say whether an act is at work."""
    return any(not run.ended for run in latest().values())


def begin(run: Run, *, carry_out: Callable[[Run], None]) -> None:
    """Carry the act out beside the request; raise CannotStrike while another one is at work."""
    with _lock:
        if busy():
            raise CannotStrike("One thing at a time: wait until what you broke before has healed.")
        _latest[run.act] = run
    threading.Thread(target=_carry_out, args=(run, carry_out), name=f"break-{run.act}", daemon=True).start()


def _carry_out(run: Run, carry_out: Callable[[Run], None]) -> None:
    try:
        carry_out(run)
    except (CannotStrike, NoProvider, Unsendable, Late) as reason:
        run.tell(str(reason), state="failed")
    except Exception:
        log.exception("sandbox.act.failed", act=run.act)
        run.tell("This did not work. The log of the web process says why.", state="failed")
    finally:
        run.ended = True


def wait(condition: Callable[[], Found | None], *, seconds: float, otherwise: str) -> Found:
    """Return the first true value of a condition, which may lose its database meanwhile. Raise Late."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := condition():
                return found
        except psycopg.OperationalError:
            pass
        if time.monotonic() > deadline:
            raise Late(otherwise)
        time.sleep(LOOK)
