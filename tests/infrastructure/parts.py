"""The processes of an instance around a database that a test gives: workers, beat, web, a broker, a provider."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from celery import Celery

from config import addresses
from sandbox.servers import valkey
from tests.agent.serving import Server, serving
from tests.forks import Program
from tests.outbox import provider as providers
from tests.outbox.provider import API_KEY, Provider
from tests.waiting import until
from tests.zombies import is_stopped

LONG = 60  # seconds for a process to start or a conversation to end on a machine that does other things too
NO_FLAGS = "--without-gossip --without-mingle --without-heartbeat -l INFO"


@dataclass(frozen=True, kw_only=True)
class Process:
    """A worker or beat: the process, what it writes when it takes work, and its log."""

    popen: Program
    ready_file: Path
    log: Path

    def ready(self) -> bool:
        """Say whether it takes work; fails when it has ended."""
        assert self.alive(), self.log.read_text()[-3000:]
        return self.ready_file.exists() and self.ready_file.read_text() == str(self.popen.pid)

    def alive(self) -> bool:
        """Say whether it is still the process that was started."""
        return self.popen.poll() is None

    def stopped(self) -> bool:
        """Say whether it has stopped itself (SIGSTOP)."""
        return is_stopped(self.popen.pid)

    def send(self, number: int) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it logged under a name, in order."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}"))
        return [line for line in lines if line.get("event") == name]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where the database, broker and provider are; starts the rest, all of which ends with the test."""

    address: Callable[[str], str]  # of the database, for a login
    broker: valkey.Server
    provider: Provider
    folder: Path
    stack: ExitStack
    env: dict[str, str] = field(default_factory=dict)

    def worker(self, name: str, *, size: int = 8, **env: str) -> Process:
        """Start a worker of the queue and login `name`."""
        options = f"-P threads -c {size} -Q {name} -n {name}{len(list(self.folder.iterdir()))}@%h {NO_FLAGS}"
        return self._start(name, "worker", *options.split(), **env)

    def beat(self) -> Process:
        """Start a clock; it has no database login."""
        schedule = self.folder / f"schedule{len(list(self.folder.iterdir()))}"
        return self._start("beat", "beat", "-s", str(schedule), "--pidfile=", "-l", "INFO")

    def web(self, **env: str) -> Server:
        """Start a web server."""
        return self.stack.enter_context(serving(**self._environment("web"), **env))

    def wait(self, *processes: Process) -> None:
        """Wait until all of them take work; they start side by side."""
        for process in processes:
            until(process.ready, seconds=LONG, what="a process that takes work")

    def ring(self, task: str, *arguments: object, times: int = 1) -> None:
        """Ring a bell from outside, as the web process does."""
        with Celery(broker=addresses.broker(self.broker.url()), set_as_current=False) as app:
            for _ in range(times):
                queue = task.partition(".")[0]
                app.send_task(task, args=[str(argument) for argument in arguments], queue=queue, ignore_result=True)

    def queued(self, queue: str) -> int:
        """Return how many bells nobody has heard yet."""
        with redis.Redis.from_url(self.broker.url()) as client:
            return int(client.llen(queue))  # type: ignore[arg-type]

    def _start(self, login: str, *words: str, **env: str) -> Process:
        number = len(list(self.folder.iterdir()))
        log, ready_file = self.folder / f"{login}-{number}.log", self.folder / f"{login}-{number}.ready"
        environment = self._environment(login) | {"BACKSTOP_READY_FILE": str(ready_file)} | env
        log.touch()
        popen = Program("celery", "-A", "config.celery", *words, env=environment, log=log)
        self.stack.callback(_end, popen)
        return Process(popen=popen, ready_file=ready_file, log=log)

    def _environment(self, login: str) -> dict[str, str]:
        """Return what a process of this login is given; the provider's key is given to one login only."""
        given = {
            "DATABASE_URL": self.address(login) if login != "beat" else "",
            "REDIS_URL": self.broker.url(),
            "BACKSTOP_LOGIN": login,
            "BACKSTOP_DATA": str(self.folder),
            "BACKSTOP_OFFLINE_TOKEN_MS": "0",
            "STRIPE_API_BASE": self.provider.base,
        }
        key = {"STRIPE_API_KEY": API_KEY} if login == "outbox" else {}
        return os.environ | given | key | self.env


def _end(popen: Program) -> None:
    popen.send_signal(signal.SIGCONT)
    popen.kill()
    popen.wait(10)


@contextmanager
def around(address: Callable[[str], str], folder: Path, **env: str) -> Iterator[Parts]:
    """Run a broker and a provider of the test's own beside a database; what `Parts` starts ends here."""
    (folder / "stripe").mkdir()
    with ExitStack() as stack:
        broker = valkey.Server(data=folder / "valkey")
        broker.start()
        stack.callback(broker.stop)
        provider = stack.enter_context(providers.running(folder / "stripe"))
        yield Parts(address=address, broker=broker, provider=provider, folder=folder, stack=stack, env=env)
