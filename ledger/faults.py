"""Named places where a process dies, stops, fails or dawdles on purpose: they show what a crash leaves behind.

`BACKSTOP_FAULT="batch.write:2:kill"` kills this process the second time that it comes by that place; several are separated
by commas. A fourth field counts one thread only: `batch.write:2:kill:<thread>`. Each strikes once in the life of a process,
which logs every place that it comes by meanwhile. Production settings refuse the variable.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from uuid import UUID

import structlog
from django.conf import settings

log = structlog.get_logger()

# What no conversation comes by by itself: what people ask, what turns everybody away, and what is done at its time.
BESIDES: Mapping[str, str] = MappingProxyType(
    {
        "send.looked_up": "the provider has said what became of a message, nothing is settled",
        "request.asked": "what a person asks of an outbox message is committed, its bell not rung",
        "request.taken": "it is taken up, the provider was asked if need be, nothing is written",
        "request.carried": "its effect is written, not committed",
        "request.done": "it is committed",
        "destination.heard": "a destination is parked or opened again, what became of the try is not written",
        "destination.resumed": "a parked one is to be tried again, not committed",
        "scan.taken": "a scan is taken, nothing compared",
        "scan.settled": "its questions are opened and those that are gone are closed, it is not finished",
        "scan.looked": "what was settled is looked at again, not committed",
        "expiry.decided": "the system's decision is committed, its bell not rung",
        "prune.taken": "what is old is gone, not committed",
        "prune.done": "it is committed, the next stretch not looked at",
    }
)
# In the order in which a conversation comes by.
POINTS: Mapping[str, str] = MappingProxyType(
    {
        "words.committed": "a staff message is committed, its bell not rung",
        "run.leased": "the thread's lease is taken, nothing read yet",
        "run.taken": "a queued message is marked as taken, not yet in the thread",
        "checkpoint.put": "a checkpoint is about to be written",
        "checkpoint.put_inside": "its statements are sent, its transaction is open",
        "checkpoint.put_done": "it is committed",
        "checkpoint.writes": "what a node returned is about to be written",
        "checkpoint.writes_inside": "its statements are sent, its transaction is open",
        "checkpoint.writes_done": "it is committed",
        "batch.begin": "the attempt is sent, the batch's BEGIN is not",
        "batch.savepoint": "a call's SAVEPOINT is set",
        "batch.write": "a call's tool has written",
        "batch.release": "a call is recorded, its savepoint not released",
        "batch.commit": "everything is sent but COMMIT",
        "batch.committed": "the batch is committed, no checkpoint knows of it",
        "question.asked": "the question's checkpoint is written, its escalation is not",
        "question.opened": "the escalation is committed, the lease not given back",
        "preview.tried": "a preview has run, it is not rolled back",
        "preview.made": "a preview is made and rolled back, nothing of it kept",
        "preview.kept": "the preview is kept, the lease not given back",
        "decision.committed": "a person's decision is committed, its bell not rung",
        "decision.read": "the decision is read, the thread not resumed",
        "decision.resumed": "it is marked as handed over, the graph has not got it",
        "run.ended": "the last checkpoint is written, the lease not given back",
        "run.released": "the lease is given back, the bell's task not ended",
        "send.claimed": "a message is claimed, nothing sent",
        "send.begun": "the write-ahead is committed, nothing sent",
        "send.answered": "the provider has answered, nothing kept",
        "send.advanced": "the provider's id is kept, the next step not sent",
        "send.settling": "the outcome and its effect are written, not committed",
        "send.settled": "the outcome is committed",
        "webhook.verified": "an event is verified, not stored",
        "webhook.stored": "an event is stored, not acknowledged",
        "webhook.taken": "a stored event is taken up",
        "webhook.adopted": "its outcome is committed, the event not marked as processed",
        **BESIDES,
    }
)
ACTIONS = ("kill", "stop", "raise", "sleep")


class BadFault(ValueError):
    """BACKSTOP_FAULT is not understood; the text is one sentence."""


class Injected(Exception):
    """What the action `raise` raises."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Where, at which time of coming by, what, and (if not everywhere) in which thread."""

    point: str
    occurrence: int
    action: str
    thread: str = ""


def parse(text: str) -> list[Fault]:
    """Return the faults that a BACKSTOP_FAULT names; raise BadFault."""
    return [_one(part.strip()) for part in text.split(",") if part.strip()]


def _one(text: str) -> Fault:
    refusal = BadFault(f"BACKSTOP_FAULT is point:occurrence:action[:thread], the action {' or '.join(ACTIONS)}, not {text!r}.")
    parts = text.split(":")
    if len(parts) not in (3, 4):
        raise refusal
    point, number, action, *threads = parts
    if action not in ACTIONS or not number.isdecimal() or int(number) < 1:
        raise refusal
    if point not in POINTS:
        raise BadFault(f"BACKSTOP_FAULT names {point!r}, which is no fault point: {', '.join(POINTS)}.")
    return Fault(point=point, occurrence=int(number), action=action, thread=threads[0] if threads else "")


class Armed:
    """The faults of this process and how often it came by each."""

    def __init__(self, faults: list[Fault], *, seconds: float) -> None:
        self.faults, self.seconds = faults, seconds
        self._passed = [0] * len(faults)
        self._lock = threading.Lock()

    def due(self, point: str, *, thread: str) -> list[Fault]:
        """Count one coming by, and return what strikes now."""
        struck = []
        with self._lock:
            for number, fault in enumerate(self.faults):
                if fault.point == point and fault.thread in ("", thread):
                    self._passed[number] += 1
                    if self._passed[number] == fault.occurrence:
                        struck.append(fault)
        return struck

    def strike(self, fault: Fault) -> None:
        """Do what the fault says to this process; only `sleep` comes back, and `stop` when somebody lets it go on."""
        named = {"point": fault.point, "occurrence": fault.occurrence, "action": fault.action, "thread": fault.thread}
        log.warning("ledger.fault.injected", **named)
        sys.stderr.flush()
        if fault.action == "raise":
            raise Injected(fault.point)
        if fault.action == "sleep":
            time.sleep(self.seconds)
        else:
            # To this very thread: a stop that another one hears of lets this one go on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGKILL if fault.action == "kill" else signal.SIGSTOP)


@cache
def _armed() -> Armed | None:
    return Armed(parse(settings.FAULT), seconds=settings.FAULT_SECONDS) if settings.FAULT else None


def reach(point: str, *, thread: UUID | None = None, first: Callable[[], object] | None = None) -> None:
    """Come by a fault point. Before something strikes `first` is called: it brings what was sent so far to the server."""
    armed = _armed()
    if armed is None:
        return
    log.info("ledger.fault.passed", point=point, thread=str(thread or ""))
    for fault in armed.due(point, thread=str(thread or "")):
        if first is not None:
            with suppress(Exception):  # an error that was under way is found by whoever reads the answers
                first()
        armed.strike(fault)
