"""The cases, as data: which way a conversation goes, which points it comes by on it and how often, and where it is killed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Way = Literal["said", "held", "approved", "asked"]

# How often a conversation of one batch of four calls comes by each point, in one process's life. `said`: from the message to
# the final answer and the paid invoice. `held`: from a message above the limits to the question. `approved`: from the answer
# to the end. `asked`: somebody has its charge looked up when all is done. A run without faults confirms the numbers, so a point
# that is added or moved shows here.
CHECKPOINTS = ("checkpoint.put", "checkpoint.put_inside", "checkpoint.put_done")
WRITES = ("checkpoint.writes", "checkpoint.writes_inside", "checkpoint.writes_done")
RUN = {"run.leased": 1, "run.ended": 1, "run.released": 1}
BATCH = {
    "batch.begin": 1,
    "batch.savepoint": 4,
    "batch.write": 4,
    "batch.release": 4,
    "batch.commit": 1,
    "batch.committed": 1,
}
SENDS = {"send.claimed": 1, "send.begun": 2, "send.answered": 2, "send.advanced": 1, "send.settling": 1, "send.settled": 1}
WEBHOOKS = {"webhook.verified": 3, "webhook.stored": 3, "webhook.taken": 3, "webhook.adopted": 3}
PASSED: Mapping[Way, Mapping[str, int]] = MappingProxyType(
    {
        "said": {
            "words.committed": 1,
            "run.taken": 1,
            **RUN,
            **dict.fromkeys(CHECKPOINTS, 5),
            **dict.fromkeys(WRITES, 4),
            **BATCH,
            **SENDS,
            **WEBHOOKS,
        },
        "held": {
            "words.committed": 1,
            "run.taken": 1,
            **RUN,
            **dict.fromkeys(CHECKPOINTS, 4),
            **dict.fromkeys(WRITES, 4),
            "question.asked": 1,
            "question.opened": 1,
            "preview.tried": 1,
            "preview.made": 1,
            "preview.kept": 1,
        },
        "approved": {
            "decision.committed": 1,
            "decision.read": 1,
            "decision.resumed": 1,
            **RUN,
            **dict.fromkeys(CHECKPOINTS, 3),
            **dict.fromkeys(WRITES, 3),
            **BATCH,
        },
        "asked": {"request.asked": 1, "request.taken": 1, "request.carried": 1, "request.done": 1},
    }
)
WEB = ("words.committed", "decision.committed", "request.asked", "webhook.verified", "webhook.stored")
OUTBOX = ("send.", "request.", "webhook.taken", "webhook.adopted")
THREADLESS = ("webhook.", "request.asked")  # an event belongs to no thread until it is looked at
# Here a process does something for all of its conversations by one hand: claiming messages, settling them, carrying out requests.
ALONE = ("send.claimed", "send.settling", "send.settled", "request.taken", "request.carried", "request.done")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A process killed as a conversation comes by a point for the n-th time; what is `asleep` does not go on until then."""

    way: Way
    point: str
    occurrence: int
    asleep: str = ""

    def __str__(self) -> str:
        return f"{self.way}-{self.point}-{self.occurrence}" + (f"-while-{self.asleep}-sleeps" if self.asleep else "")

    @property
    def part(self) -> str:
        """Return the process that comes by the point."""
        if self.point in WEB:
            return "web"
        return "outbox" if self.point.startswith(OUTBOX) else "agent"

    def whose(self, thread: str) -> str:
        """Return the thread whose comings by count, or nothing if they all do."""
        return "" if self.point.startswith(THREADLESS) else thread

    @property
    def holds(self) -> bool:
        """Say whether a conversation that stands at the point keeps the process's others from going on."""
        return self.point in ALONE

    def fault(self, thread: str, *, action: str) -> str:
        """Return what the process is armed with: to die there, or to stand there until it is killed."""
        strike = ":".join(part for part in (self.point, str(self.occurrence), action, self.whose(thread)) if part)
        return f"{self.asleep}:sleep:{thread},{strike}" if self.asleep else strike


def every() -> list[Case]:
    """Return every case: each point, each time, on each way, and what a node returned and the next checkpoint in both orders."""
    plain = [
        Case(way=way, point=point, occurrence=number)
        for way, points in PASSED.items()
        for point, most in points.items()
        for number in range(1, most + 1)
    ]
    return plain + list(_orders())


def _orders() -> Iterator[Case]:
    """Say which is committed at the kill: the node's writes or the checkpoint after it. LangGraph sends both at once."""
    for number in range(1, PASSED["said"]["checkpoint.writes"] + 1):
        yield Case(
            way="said", point="checkpoint.put_done", occurrence=number + 1, asleep=f"checkpoint.writes:{number}"
        )  # the first checkpoint is the input's: no node wrote before it
        yield Case(way="said", point="checkpoint.writes_done", occurrence=number, asleep=f"checkpoint.put:{number + 1}")


def some() -> list[Case]:
    """Return a part that takes minutes: each point on the first way that passes it, each time in turn, and both orders once.

    What is asked when all is done is left to `make matrix`: test_besides.py kills a process of its own there.
    """
    by_point: dict[str, Case] = {}
    for case in every():
        if not case.asleep and case.way != "asked":
            by_point.setdefault(case.point, case)
    turns = enumerate(by_point.items())
    late = [Case(way=case.way, point=point, occurrence=_late(case, number)) for number, (point, case) in turns]
    orders = [case for case in every() if case.asleep]
    return late + orders[4:6]


def _late(case: Case, number: int) -> int:
    """Return another time for each point in turn, so that all places in the batch are among them."""
    return 1 + number % PASSED[case.way][case.point]


def is_payment(point: str) -> bool:
    """Say whether it is a point of the outbox's: the same on every way."""
    return point.startswith(("send.", "webhook."))
