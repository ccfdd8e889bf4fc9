"""Running cases on one instance. The healing of one case goes on while the next is armed.

A part is armed for the case after this one before this one strikes, so each kill is also the start that is armed for the next.
Strikes come one at a time: a kill never hits a conversation of another case on its way to its own point, only those that heal.
"""

import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from sandbox.supervisor import injections
from sandbox.supervisor.records import Record
from tests.matrix import cases, ends, instances
from tests.matrix.cases import Case
from tests.matrix.instances import Log, Provider
from tests.matrix.talks import Desk, Talk
from tests.stack import Stack, manage
from tests.waiting import until

STRIKE = 60  # seconds from what is said to the kill
QUIET = 400  # seconds: a lease of the outbox has to run out; a run that was hit again and again is tried again after 300
# A process that starts takes up what the one before left. What heals is let go on first: it is not to be hit each time.
HEALING = "SELECT FROM public.agent_thread WHERE leased_until > now() AND split_part(lease_owner, ':', 2) = %s"


@dataclass(kw_only=True)
class Result:
    """What became of one case."""

    case: Case
    talk: Talk
    killed: bool = False
    seconds: float = 0.0  # from what was said to the kill
    again: bool = False  # a later kill hit it once more
    complaints: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Report:
    """What became of all."""

    results: list[Result]
    seconds: dict[str, float]
    restarts: dict[str, int]
    unfinished: list[str]
    invariants: "subprocess.CompletedProcess[str]"

    @property
    def fine(self) -> bool:
        """Say whether every case was struck and nothing is wrong."""
        cases_fine = all(result.killed and not result.complaints for result in self.results)
        return cases_fine and not self.unfinished and self.invariants.returncode == 0


def run(stack: Stack, desk: Desk, chosen: Iterable[Case]) -> Report:
    """Strike every case on an instance, let it heal, and look."""
    return _Run(stack, desk).report(list(chosen))


class _Run:
    def __init__(self, stack: Stack, desk: Desk) -> None:
        self.stack, self.desk = stack, desk
        self.striking = threading.Lock()
        self.seconds: dict[str, float] = {}

    def report(self, chosen: list[Case]) -> Report:
        began = time.monotonic()
        results = [Result(case=case, talk=self.desk.begin(case.way)) for case in chosen]
        self._bring_to_questions([result.talk for result in results])
        self.seconds["preparing"], began = time.monotonic() - began, time.monotonic()
        lanes = cases.grouped(chosen)
        with ThreadPoolExecutor(len(lanes)) as pool:
            list(pool.map(lambda part: self._lane(part, [r for r in results if r.case.part == part]), lanes))
        self.seconds["killing"], began = time.monotonic() - began, time.monotonic()
        unfinished = self._heal([result.talk for result in results])
        self.seconds["healing"] = time.monotonic() - began
        movements = Provider(self.stack).movements()
        for result in results:
            result.complaints += ends.complaints(self.desk, result.talk, movements=movements)
            result.again = ends.takeovers(self.desk, result.talk) > 1
        restarts = Record.of(self.stack.data).restarts
        return Report(
            results=results,
            seconds=self.seconds,
            restarts=restarts,
            unfinished=unfinished,
            invariants=check_invariants(self.stack),
        )

    def _bring_to_questions(self, talks: list[Talk]) -> None:
        asked = [talk for talk in talks if talk.way == "approved"]
        for talk in asked:
            self.desk.say(talk)
        for talk in asked:
            self.desk.until_asked(talk)

    def _lane(self, part: str, results: list[Result]) -> None:
        """Strike one case of a part after the other: the kill of one is the start that is armed for the next.

        An event of the provider belongs to no thread: one that is delivered again may strike before anything is said.
        """
        log = self._arm(results[0])
        for number, result in enumerate(results):
            instances.until_armed(self.stack, part)
            following = self._arm(results[number + 1]) if result is not results[-1] else log
            with self.striking:
                self._let_heal()
                self._strike(result, log)
            log = following
        instances.until_works(self.stack, part)

    def _let_heal(self) -> None:
        agent = str(Record.of(self.stack.data).children["agent"].pid)
        until(lambda: not self.desk.rows(HEALING, agent), seconds=STRIKE, what="the end of what heals")

    def _arm(self, result: Result) -> Log:
        """Arm the next start of a part, and return its log from here on."""
        fault = result.case.fault(str(result.talk.thread))
        injections.arm(self.stack.data, part=result.case.part, fault=fault)
        return Log(self.stack, result.case.part)

    def _strike(self, result: Result, log: Log) -> None:
        """Do what brings the conversation to its point and wait for the kill there."""
        began, case = time.monotonic(), result.case
        kill = (case.point, case.occurrence, "kill", case.whose(str(result.talk.thread)))

        def struck() -> bool:
            lines = log.events("ledger.fault.injected")
            return kill in [(line["point"], line["occurrence"], line["action"], line["thread"]) for line in lines]

        self.desk.go_on(result.talk)
        try:
            result.killed = until(struck, seconds=STRIKE)
        except AssertionError:
            result.complaints.append(f"it was not killed within {STRIKE} s")
            instances.kill(self.stack, case.part)
        result.seconds = time.monotonic() - began

    def _heal(self, talks: list[Talk]) -> list[str]:
        """Answer what is asked, and wait until everything has ended or stands still; return what has not ended."""
        left: list[str] = []

        def ended() -> bool:
            left[:] = self._look(talks)
            return not left

        with suppress(AssertionError):  # whoever has not ended is a line of the table
            until(ended, seconds=QUIET, every=0.2)
        return left

    def _look(self, talks: list[Talk]) -> list[str]:
        asked = [found for talk in talks if talk.way != "said" and (found := self.desk.question(talk))]
        for escalation in asked:
            self.desk.reviewer.approve(escalation)
        return [f"escalation {number}" for number in asked] + ends.moving(self.desk, talks)


def check_invariants(stack: Stack) -> "subprocess.CompletedProcess[str]":
    """Have the instance's own command look at all its rows."""
    return manage("check_invariants", BACKSTOP_DATA=str(stack.data), BACKSTOP_LOGIN="keeper")
