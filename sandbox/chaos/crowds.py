"""The clients and the reviewer of a run, a thread each."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from random import Random

from sandbox.chaos.people import Person, Promises, Unanswered
from sandbox.chaos.places import Place
from sandbox.chaos.plans import Plan, Step, Talk

LOOK = 0.5  # seconds between two looks
# What ends a question for good, when everything is to come to its end.
GENTLE = ("approve", "close", "answer", "retry", "reject")
# How a disagreement is settled where nothing fits the evidence. What asks the provider first comes before anybody's word.
EXITS = ("adopt", "settle_rejected", "resend", "replay_thread", "refund", "compensate")
UNDO = 3  # seconds in which a charge may be taken back


class Crowd:
    """Everybody who talks to the instance."""

    def __init__(self, place: Place, plan: Plan, *, customers: Sequence[int]) -> None:
        self.promises = Promises()
        self.staff = Person(place, "support", promises=self.promises)
        self._judge = Person(place, "reviewer", promises=self.promises)
        self._admin = Person(place, "admin", promises=self.promises)
        self._over, self._ending, self._gone = threading.Event(), threading.Event(), threading.Event()
        self._customers, self._talks = customers, plan.clients
        self._dice = Random(f"{plan.seed}:reviewer")  # noqa: S311 - a plan that can be had again
        self._threads = ThreadPoolExecutor(len(plan.clients) + 1, thread_name_prefix="chaos")
        self._work: list[Future[None]] = []
        self._judging: list[Future[None]] = []

    def start(self) -> None:
        """Log everybody in, and let them begin."""
        self.staff.log_in()
        self._judge.log_in()
        self._admin.log_in()
        self._admin.let_undo(UNDO)
        self._judging = [self._threads.submit(self._guarded, self._review)]
        clients = [partial(self._client, self.staff.again(), talks) for talks in self._talks]
        self._work = [self._threads.submit(self._guarded, client) for client in clients]

    def finish(self) -> None:
        """Begin nothing new; return when everything that was sent is answered. The reviewer goes on until all is decided.

        A scan is asked for: what disagrees by then is put before the reviewer, too.
        """
        self.promises.calm_since = time.monotonic()
        self._over.set()
        for work in self._work:
            work.result()
        self._judge.again().scan()
        self._ending.set()

    def check(self) -> None:
        """Raise what the reviewer fell over, if that happened: nothing would be decided any more."""
        for work in self._judging:
            if work.done():
                work.result()

    def leave(self) -> None:
        """Have everybody go, the reviewer too."""
        if self.promises.calm_since is None:  # cut short: nobody waits for an answer for ever
            self.promises.calm_since = time.monotonic()
        self._over.set()
        self._gone.set()
        for work in self._judging:
            work.result()
        self._threads.shutdown()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Unanswered as fault:
            self.promises.odd.append(str(fault))

    # -- clients -------------------------------------------------------------------------------
    def _client(self, person: Person, talks: Sequence[Talk]) -> None:
        for talk in talks:
            if self._over.is_set():
                return
            number = person.begin(self._customers[talk.customer])
            if number is not None:
                self._talk(person, talk, number)

    def _talk(self, person: Person, talk: Talk, number: int) -> None:
        for step in talk.steps:
            if self._over.wait(step.pause):
                return
            self._do(person, step, number)
        deadline = time.monotonic() + talk.patience
        while time.monotonic() < deadline and person.busy(number) and not self._over.wait(LOOK):
            pass

    def _do(self, person: Person, step: Step, number: int) -> None:
        if step.does == "say":
            person.say(number, step.text, twice=step.twice)
        elif step.does == "undo":
            person.undo(number)
        else:
            person.press(number, step.does)

    # -- the reviewer --------------------------------------------------------------------------
    def _review(self) -> None:
        while not self._gone.wait(LOOK):
            for escalation in self._judge.undecided()[: None if self._ending.is_set() else 3]:
                self._judge.decide(escalation, choose=self._choose)
            for escalation in self._judge.disagreements():
                self._judge.settle(escalation, choose=lambda offered: next(kind for kind in EXITS if kind in offered))

    def _choose(self, offered: list[str]) -> str:
        if self._ending.is_set():
            return next(kind for kind in GENTLE if kind in offered)
        return self._dice.choice(offered)
