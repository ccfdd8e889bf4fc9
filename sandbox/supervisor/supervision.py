"""The supervisor of one data directory: bring everything up, keep it up, take it down."""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sandbox.servers import CannotStart, accounts, identities, postgres, valkey
from sandbox.supervisor import brokers, children, databases, instances, parts, steps
from sandbox.supervisor.children import Child
from sandbox.supervisor.parts import Part
from sandbox.supervisor.preparation import Preparation
from sandbox.supervisor.records import Record
from sandbox.supervisor.wishes import Stopped, Wish

START_SECONDS = 120.0
LARGEST_LOG = 20 * 1024 * 1024


class Supervisor:
    """Holds the data directory's lock for as long as it lives, so that there is one."""

    def __init__(self, wish: Wish, *, say: Callable[[str], None]) -> None:
        self.wish, self.say = wish, say
        self.data, self.logs = wish.data, wish.data / "logs"
        self.stopping = threading.Event()
        self.children: list[Child] = []
        self.content: dict[str, Any] = {}
        self.postgres: postgres.Server | None = None
        self.valkey: valkey.Server | None = None
        self.record = Record(file=wish.data / "processes.json")
        self._lock: IO[str] | None = None

    # -- up ------------------------------------------------------------------------------------
    def take_over(self) -> bool:
        """Become this directory's supervisor and end what a killed one left; False when another one has it all running.

        Waits while another one starts or stops; raises Stopped or CannotStart.
        """
        make_directories(self.data)
        self._lock = open(self.data / "supervisor.lock", "a")  # noqa: SIM115  # held until this process ends
        deadline = time.monotonic() + START_SECONDS
        while not self._locked():
            record = Record.of(self.data)
            if record.state == "ready" and record.supervised():
                return False
            if time.monotonic() > deadline:
                raise CannotStart(f"Another start or stop of {self.data} does not come to an end: run `manage.py down`.")
            if self.stopping.wait(0.1):
                raise Stopped
        self.record = Record.of(self.data)
        self.record.restarts.clear()
        self._note("starting")
        if left := children.end_left_over(self.record):
            self.say(f"Ended what an earlier start left running: {', '.join(left)}.")
        return True

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock or 0, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def start(self) -> None:
        """Bring everything up; raises CannotStart, or Stopped when `stopping` was set meanwhile."""
        known = instances.read(self.data)
        port = self.wish.port if self.wish.port is not None else known.get("web", {}).get("port", instances.PORT)
        port = port or instances.free_port()
        instances.check_port(self.wish.host, port)
        self.content = instances.with_secrets(known, host=self.wish.host, port=port)
        self._start_stripe()
        self._timed("broker", self._start_broker)
        self._wait_for(self.children)
        self._timed("database", self._start_database)
        self._prepare()
        self._start_application()
        self._note("ready")

    def _note(self, state: str) -> None:
        self.record.state, self.record.supervisor = state, None if state == "down" else identities.of(os.getpid())
        self.record.write()

    def _note_if_possible(self, state: str) -> None:
        """Write the state down, but stop whatever the disk says."""
        try:
            self._note(state)
        except OSError as fault:
            self.say(f"{self.record.file} was not written: {fault.strerror}.")

    def _timed(self, name: str, step: Callable[[], None]) -> None:
        began = time.monotonic()
        step()
        self._told(name, began)

    def _told(self, name: str, began: float) -> None:
        self.say(f"  {name:<10} {time.monotonic() - began:5.1f} s")

    def _start_stripe(self) -> None:
        self.content["stripe"] = {} if self.wish.real("STRIPE_API_KEY") else instances.stripe(self.content)
        instances.remember(self.data, self.content)
        if self.content["stripe"]:
            self._start_child(parts.stripe(data=self.data, content=self.content))

    def _start_broker(self) -> None:
        if given := self.wish.real("REDIS_URL"):
            brokers.check(given)
        else:
            self.valkey = valkey.Server(data=self.data / "valkey", log=self.logs / "valkey.log")
            self.valkey.start()
        self.content["broker"] = self.valkey.url() if self.valkey else given

    def _start_database(self) -> None:
        if given := self.wish.real("DATABASE_URL"):
            databases.check(given)
        else:
            self.postgres = postgres.Server(data=self.data / "postgres", log=self.logs / "postgres.log")
            self.postgres.start()
        admin = databases.make(self.postgres) if self.postgres else given
        self._preparation().logins(admin)

    def _prepare(self) -> None:
        ready = self._preparation()
        self._timed("tables", ready.tables)
        found = databases.content(self.content["database"]["owner"])
        if ready.wants_people(found):
            self._timed("people", ready.people)
        if ready.wants_demo(found):
            self._timed("demo data", ready.demo)

    def _preparation(self) -> Preparation:
        return Preparation(self.wish, content=self.content, embedded=self.postgres is not None, stopping=self.stopping)

    def _start_child(self, part: Part) -> Child:
        child = Child(part, data=self.data, directory=self.wish.directory, record=self.record)
        self.children.append(child)
        child.start()
        return child

    def _start_application(self) -> None:
        self._wait_for([self._start_child(part) for part in parts.application(data=self.data, content=self.content)])

    def _wait_for(self, started: list[Child]) -> None:
        """Wait until all work, telling each; a part that ends instead says why in its log."""
        waiting, deadline = list(started), time.monotonic() + START_SECONDS
        while waiting:
            for child in [child for child in waiting if child.ready()]:
                waiting.remove(child)
                self._told(child.part.name, child.started)
            for child in waiting:
                if child.ended() is not None or time.monotonic() > deadline:
                    raise CannotStart(f"{child.part.name} did not start ({steps.last_words(child.log)}): see {child.log}.")
            if self.stopping.wait(0.05):
                raise Stopped

    # -- keep up -------------------------------------------------------------------------------
    def watch(self) -> None:
        """Start again whatever ends, until `stopping` is set."""
        while not self.stopping.wait(0.5):
            if not (self.data / "instance.json").exists():
                return self.say(f"{self.data} is gone.")
            for child in self.children:
                code = child.ended()
                if code is None and not child.came_up:
                    child.ready()
                if self._tried(child.part.name, child.revive):
                    self.say(f"{child.part.name} ended with {code} and was started again.")
            if self.postgres and not self.postgres.postmaster():
                self._start_again("postgres", self.postgres.start)
            if self.valkey and not self.valkey.pid():
                self._start_again("valkey", self.valkey.start)

    def _start_again(self, name: str, start: Callable[[], None]) -> None:
        """Start an embedded server that has ended, and count it."""

        def counted() -> None:
            start()
            self.record.restarts[name] = self.record.restarts.get(name, 0) + 1
            self.record.write()

        self._tried(name, counted)

    def _tried(self, name: str, again: Callable[[], bool | None]) -> bool:
        """Start something again and say whether that was done; what stands in the way may be gone at the next look."""
        try:
            return bool(again())
        except (CannotStart, OSError) as error:
            self.say(f"{name} could not be started again: {error}")
            self.stopping.wait(2)
            return False

    # -- down ----------------------------------------------------------------------------------
    def stop(self) -> None:
        """Stop everything that this supervisor started or took over: first what works, then what it works with."""
        self.stopping.set()
        self._note_if_possible("stopping")
        children.stop_all([child for child in self.children if child.part.name != "stripe"])
        children.stop_all([child for child in self.children if child.part.name == "stripe"])
        for server in (self.valkey, self.postgres):
            if server:
                server.stop()
        self.record.children = {}
        self._note_if_possible("down")


def stop_servers(data: Path) -> None:
    """Stop the embedded servers of a data directory, whoever started them."""
    if (data / "valkey").exists():
        valkey.Server(data=data / "valkey", log=data / "logs" / "valkey.log").stop()
    if (data / "postgres").exists():
        postgres.Server(data=data / "postgres", log=data / "logs" / "postgres.log").stop()


def make_directories(data: Path) -> None:
    """Make what the instance writes to. The directory itself may be entered: PostgreSQL may run as another account."""
    accounts.check_owner(data)
    data.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in ("logs", "run", "stripe"):
        (data / name).mkdir(mode=0o700, exist_ok=True)
    for log in (data / "logs").glob("*.log"):
        if log.stat().st_size > LARGEST_LOG:
            log.replace(log.with_suffix(".log.old"))
