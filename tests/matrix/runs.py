"""Running waves of cases on one instance. The healing of one wave goes on while the next is armed.

A part is armed for the wave after this one before this one is killed, so each kill is also the start that is armed for the next.
Waves come one at a time: a kill never hits a conversation on its way to its own point, only those that stand there or heal.
"""

import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from sandbox.supervisor import injections
from sandbox.supervisor.records import Record
from tests.matrix import ends, instances, waves
from tests.matrix.cases import Case
from tests.matrix.instances import Log, Provider
from tests.matrix.talks import Desk, Talk
from tests.matrix.waves import Result, Wave
from tests.stack import Stack, manage
from tests.waiting import until

STRIKE = 60  # seconds from what is said to the point
QUIET = 400  # seconds: a lease of the outbox has to run out; a run that was hit again and again is tried again after 300
MARK = ("point", "occurrence", "action", "thread")
# A process that starts takes up what the one before left. What heals is let go on first: it is not to be hit each time.
HEALING = "SELECT FROM public.agent_thread WHERE leased_until > now() AND split_part(lease_owner, ':', 2) = %s"


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
        self._prepare([result.talk for result in results])
        self.seconds["preparing"], began = time.monotonic() - began, time.monotonic()
        lanes = [found for part in waves.MOST if (found := waves.of(results, part=part))]
        with ThreadPoolExecutor(len(lanes)) as pool:
            list(pool.map(self._lane, lanes))
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

    def _prepare(self, talks: list[Talk]) -> None:
        """Bring conversations to the question, or to the end, that their way begins with."""
        begun = [talk for talk in talks if talk.way in ("approved", "asked")]
        for talk in begun:
            self.desk.say(talk)
        for talk in begun:
            if talk.way == "approved":
                self.desk.until_shown(talk)
            else:
                self.desk.until_paid(talk)

    def _lane(self, lane: list[Wave]) -> None:
        """Strike one wave of a part after the other.

        An event of the provider belongs to no thread: one that is delivered again may strike before anything is said.
        """
        log = self._arm(lane[0])
        for number, wave in enumerate(lane):
            instances.until_armed(self.stack, wave.part)
            following = self._arm(lane[number + 1]) if wave is not lane[-1] else log
            with self.striking:
                self._let_heal()
                self._strike(wave, log)
            log = following
        instances.until_works(self.stack, lane[0].part)

    def _let_heal(self) -> None:
        agent = str(Record.of(self.stack.data).children["agent"].pid)
        until(lambda: not self.desk.rows(HEALING, agent), seconds=STRIKE, what="the end of what heals")

    def _arm(self, wave: Wave) -> Log:
        """Arm the next start of a part, and return its log from here on."""
        injections.arm(self.stack.data, part=wave.part, fault=wave.fault)
        return Log(self.stack, wave.part)

    def _strike(self, wave: Wave, log: Log) -> None:
        """Bring the conversations to their points, those last for which others would have to wait, and kill the process."""
        for holds in (False, True):
            self._bring([result for result in wave.results if result.case.holds == holds], wave.action, log)
        if wave.action != "kill" or wave.results[0].complaints:
            instances.kill(self.stack, wave.part)
        for result in wave.results:
            result.killed = not result.complaints

    def _bring(self, results: list[Result], action: str, log: Log) -> None:
        """Do what brings conversations to their points, and wait until they have come there."""
        for result in results:
            self.desk.go_on(result.talk)
        missing: list[Result] = []

        def there() -> bool:
            told = [{name: line[name] for name in MARK} for line in log.events("ledger.fault.injected")]
            missing[:] = [result for result in results if result.mark(action) not in told]
            return not missing

        with suppress(AssertionError):
            until(there, seconds=STRIKE)
        for result in missing:
            result.complaints.append(f"it did not come to its point within {STRIKE} s")

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
        asked = [talk for talk in talks if talk.way in ("held", "approved") and self.desk.question(talk)]
        for talk in asked:
            self.desk.approve(talk)
        return [f"the question of {talk.thread}" for talk in asked] + ends.moving(self.desk, talks)


def check_invariants(stack: Stack) -> "subprocess.CompletedProcess[str]":
    """Have the instance's own command look at all its rows."""
    return manage("check_invariants", BACKSTOP_DATA=str(stack.data), BACKSTOP_LOGIN="keeper")
