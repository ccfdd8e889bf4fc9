"""PostgreSQL breaks off or dies while a worker is in the middle of something: the same process goes on, every effect once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal
from uuid import UUID, uuid4

import psycopg
import pytest

from ledger.connections import Pool
from tests.agent import talks
from tests.agent.batches import make_customer
from tests.agent.scripts import calls, says
from tests.infrastructure import parts, servers
from tests.infrastructure.desks import Desk, Talk
from tests.infrastructure.parts import LONG, Parts, Process
from tests.infrastructure.servers import Cluster
from tests.stack import open_folder
from tests.waiting import until


@dataclass(frozen=True, kw_only=True)
class Case:
    """Which worker stops where, and what happens to the server meanwhile."""

    worker: str
    point: str
    happens: Literal["terminate", "restart"]
    thread: UUID = field(default_factory=uuid4)

    @property
    def fault(self) -> str:
        """Return what makes the worker stop there, once, in this conversation."""
        return f"{self.point}:stop:{self.thread}"

    def __str__(self) -> str:
        return f"{self.happens} at {self.point}"


POINTS = {
    "agent": ("run.taken:1", "batch.write:2", "batch.commit:1", "batch.committed:1", "checkpoint.put_inside:2",
              "checkpoint.writes_inside:2", "run.ended:1"),
    "outbox": ("send.claimed:1", "send.begun:1", "send.answered:2", "send.settling:1"),
}  # fmt: skip
CASES = [
    *[Case(worker=worker, point=point, happens="restart") for worker, points in POINTS.items() for point in points],
    Case(worker="agent", point="batch.write:1", happens="terminate"),
    Case(worker="agent", point="checkpoint.put_inside:3", happens="terminate"),
    Case(worker="outbox", point="send.settling:1", happens="terminate"),
]
PAUSE = 0.5  # seconds between bells: a worker that let go of something does so within them


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server that may be killed, and the two workers that must live through it."""

    cluster: Cluster
    parts: Parts
    desk: Desk
    workers: dict[str, Process]
    evidence: UUID

    @contextmanager
    def stopped(self, worker: str) -> Iterator[None]:
        """Wait until a worker stopped itself, and let it go on afterwards: the same process."""
        process = self.workers[worker]
        self.until(process.stopped, what=f"{worker} that stopped")
        yield
        process.send(signal.SIGCONT)

    @contextmanager
    def asleep(self, worker: str) -> Iterator[None]:
        """Keep a worker from doing anything in the block."""
        self.workers[worker].send(signal.SIGSTOP)
        yield
        self.workers[worker].send(signal.SIGCONT)

    def take_up(self, talk: Talk) -> None:
        """Ring for a conversation until a worker has it, and no more then: a bell that finds it taken writes, too."""

        def taken() -> bool:
            if found := talk.state() == "running":
                return found
            self.parts.ring("agent.drive", talk.thread)
            return False

        until(taken, seconds=LONG, every=PAUSE, what="a worker that takes it up")

    def until(self, condition: Callable[[], bool], *, what: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Wait while bells ring as the clock rings them: one that a dying connection swallowed is followed by another."""
        last = monotonic()

        def asked() -> bool:
            nonlocal last
            if not (done := condition()) and monotonic() - last > PAUSE:
                meanwhile()
                self.parts.ring("agent.sweep")
                self.parts.ring("outbox.deliver")
                last = monotonic()
            return done

        until(asked, seconds=LONG, what=what)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Run one server and two workers, armed for every case of this file."""
    evidence = uuid4()
    faults = {worker: ",".join([case.fault for case in CASES if case.worker == worker]) for worker in ("agent", "outbox")}
    faults["agent"] += f",batch.begin:1:stop:{evidence}"
    with open_folder() as folder, servers.cluster(folder) as cluster:
        (folder / "run").mkdir()
        with parts.around(cluster.address, folder / "run") as running:
            workers = {worker: running.worker(worker, BACKSTOP_FAULT=fault) for worker, fault in faults.items()}
            running.wait(*workers.values())
            desk = Desk(address=cluster.address, provider=running.provider)
            yield Site(cluster=cluster, parts=running, desk=desk, workers=workers, evidence=evidence)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_goes_on_in_the_same_process_and_ends_the_conversation(site: Site, case: Case) -> None:
    talk = site.desk.begin(thread=case.thread)
    talk.say()
    site.parts.ring("agent.drive", talk.thread)
    if case.worker == "outbox":
        site.until(talk.ended, what="an answer")  # the agent has nothing in hand when the server breaks off
    with site.stopped(case.worker):
        if case.happens == "restart":
            site.cluster.restart_at_once()
        else:
            site.cluster.terminate_everybody()
    if case.worker == "outbox":
        talk.forget_lease()
    site.until(talk.settled, what="a settled conversation", meanwhile=talk.later)
    talk.check()
    assert all(process.alive() for process in site.workers.values())


def test_it_gives_no_attempt_the_evidence_of_one_that_the_server_lost(site: Site) -> None:
    attempts = "SELECT id FROM public.ledger_attempt WHERE thread = %s ORDER BY id"
    talk = site.desk.begin(thread=site.evidence)
    talk.say()
    with site.asleep("outbox"), site.cluster.losing_what_nobody_waits_for():
        site.take_up(talk)
        until(site.workers["agent"].stopped, seconds=LONG, what="a worker that stopped")
        [(lost,)] = site.desk.rows(attempts, talk.thread)
    assert site.desk.rows(attempts, talk.thread) == []
    somebody_elses = stranger(site.cluster)
    site.workers["agent"].send(signal.SIGCONT)
    site.until(talk.settled, what="a settled conversation", meanwhile=talk.later)

    talk.check()
    [(committed,)] = site.desk.rows(attempts, talk.thread)
    assert len({lost, somebody_elses, committed}) == 3
    outcome = "SELECT thread, outcome FROM public.ledger_attempt_outcome WHERE attempt_id = %s"
    assert site.desk.rows(outcome, lost) == [(talk.thread, "infrastructure")]
    assert site.desk.rows(outcome, committed) == [(talk.thread, "committed")]
    executed = "SELECT DISTINCT attempt_id FROM public.ledger_execution WHERE thread = %s"
    assert site.desk.rows(executed, talk.thread) == [(committed,)]


@contextmanager
def scripted(cluster: Cluster) -> Iterator[talks.Talk]:
    """Begin a conversation that the test drives by itself."""
    with ExitStack() as opened:
        logins = (psycopg.connect(cluster.address(login), autocommit=True) for login in ("owner", "web"))
        owner, web = (opened.enter_context(conn) for conn in logins)
        pool = opened.enter_context(Pool(cluster.address("agent"), size=4))
        yield talks.Talk(pool=pool, owner=owner, web=web, customer=make_customer(owner))


def invoiced(talk: talks.Talk) -> tuple[Any, ...]:
    """Return what the model of such a conversation says."""
    invoice = {"customer_id": talk.customer, "billing_period": "2025-11-01", "amount_minor": 48_000, "currency": "EUR"}
    return calls(("CreateInvoice", invoice)), says("Done.")


def stranger(cluster: Cluster) -> UUID:
    """Let somebody else's conversation apply something, and return the id of its attempt."""
    with scripted(cluster) as talk:
        talk.say("Invoice November")
        assert talk.drive(*invoiced(talk)) == "idle"
        found: UUID = talk.one("SELECT id FROM public.ledger_attempt WHERE thread = %s", talk.thread)
        return found


def test_it_leaves_nothing_that_contradicts_the_invariants(site: Site) -> None:
    assert site.desk.broken() == []
    assert all(process.alive() for process in site.workers.values())


def test_it_asks_a_person_when_the_disk_is_full_and_goes_on_when_there_is_room(site: Site) -> None:
    cluster, folder = site.cluster.another(), site.parts.folder / "small"
    with scripted(cluster) as talk, servers.full_disk(cluster.address(), table="billing_invoice", folder=folder) as make_room:
        talk.say("Invoice November")
        assert talk.drive(*invoiced(talk)) == "waiting"
        assert talk.rows("SELECT outcome, sqlstate FROM public.ledger_attempt_outcome") == [("infrastructure", "53100")] * 3
        assert talk.escalations() == [("infrastructure", "open")]
        make_room()
        talk.decide("retry")
        assert talk.drive(*invoiced(talk)) == "idle"
        assert talk.one("SELECT count(*) FROM public.billing_invoice") == 1
