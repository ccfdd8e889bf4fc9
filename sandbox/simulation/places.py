"""The simulation's own processes: PostgreSQL, broker, Stripe sandbox, the web server that hears its events, two relay workers."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from celery import Celery
from django.conf import settings

from sandbox.chaos.places import NOT_OURS
from sandbox.demo.provider import Provider
from sandbox.servers import CannotStart, postgres, valkey
from sandbox.supervisor import children, databases, environments, instances, parts, steps, supervision
from sandbox.supervisor.children import Child
from sandbox.supervisor.parts import Part
from sandbox.supervisor.preparation import Preparation
from sandbox.supervisor.records import Record
from sandbox.supervisor.wishes import Wish

RELAYS = ("outbox", "outbox2")
THREADS = 8  # of each relay worker
ANSWER_SECONDS = 1  # for an answer of the provider
START_SECONDS = 60.0


class Place:
    """One set of processes. `keep` leaves their files."""

    def __init__(self, data: Path, content: dict[str, Any]) -> None:
        self.data, self.content, self.keep = data, content, False
        self.provider = Provider(api_base=content["stripe"]["api_base"], api_key=content["stripe"]["api_key"])
        self._bell = Celery(broker=content["broker"].replace("unix://", "redis+socket://").replace("?db=", "?virtual_host="))

    def connect(self, login: str) -> "psycopg.Connection[Any]":
        """Return an autocommit connection as a login; close it."""
        return psycopg.connect(self.content["database"][login], autocommit=True, connect_timeout=5)

    def ring(self, times: int = 1) -> None:
        """Ask relay workers to look."""
        for _ in range(times):
            self._bell.send_task("outbox.deliver", queue="outbox", expires=30, ignore_result=True)

    def close(self) -> None:
        """Close what was opened to talk to the processes."""
        self.provider.close()
        self._bell.close()


@contextmanager
def own() -> Iterator[Place]:
    """Start everything in a folder of its own; stop it and take the folder away afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="backstop-simulation-"))
    folder.chmod(0o755)  # PostgreSQL may run as another account; the secrets in it have modes of their own
    data, keep = folder / "instance", False
    supervision.make_directories(data)
    broker = valkey.Server(data=data / "valkey", log=data / "logs" / "valkey.log")
    database = postgres.Server(data=data / "postgres", log=data / "logs" / "postgres.log", settings=postgres.QUICK)
    try:
        broker.start()
        database.start()
        content = prepare(data, admin=databases.make(database), broker=broker.url())
        with running(data, content) as place:
            yield place
            keep = place.keep
    finally:
        broker.stop()
        database.stop()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def content(*, broker: str) -> dict[str, Any]:
    """Return an instance's addresses and secrets, without its database."""
    made = instances.with_secrets({}, host="127.0.0.1", port=instances.free_port())
    return made | {"stripe": instances.stripe(made), "broker": broker, "logins": []}


def prepare(data: Path, *, admin: str, broker: str) -> dict[str, Any]:
    """Return the content of a new instance whose database has its logins, tables and grants."""
    given = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    wish = Wish(data=data, directory=settings.BASE_DIR, host="127.0.0.1", port=None, demo=False, given=given)
    made = content(broker=broker)
    preparation = Preparation(wish, content=made, embedded=True, stopping=threading.Event())
    preparation.logins(admin)
    preparation.tables()
    return made


@contextmanager
def running(data: Path, made: dict[str, Any]) -> Iterator[Place]:
    """Run the sandbox, the web server and the relay workers of an instance whose database and broker run."""
    instances.write(data, made)
    record = Record(file=data / "processes.json")
    started = [Child(part, data=data, directory=settings.BASE_DIR, record=record) for part in wanted(data, made)]
    place = Place(data, made)
    try:
        for child in started:
            child.start()
        _wait(started)
        yield place
    finally:
        children.stop_all(started[1:])
        children.stop_all(started[:1])
        place.close()


def wanted(data: Path, made: dict[str, Any]) -> list[Part]:
    """Return the processes, the sandbox first; nothing that the environment says of real things reaches them."""
    whole = [parts.stripe(data=data, content=made), parts.web(data=data, content=made), *(_relay(data, name) for name in RELAYS)]
    real = set(NOT_OURS) - {"BACKSTOP_DATA", "BACKSTOP_LOGIN"}
    return [replace(part, environment=_without(part.environment, real)) for part in whole]


def _without(environment: dict[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}


def _relay(data: Path, name: str) -> Part:
    """Return a worker that delivers, as `up` starts it."""
    ready = environments.ready_file(data, name)
    part = parts.worker("outbox", data=data, pool="threads", size=THREADS, patience=10)
    command = tuple(f"{name}@%h" if word == "outbox@%h" else word for word in part.command)
    more = {"BACKSTOP_READY_FILE": str(ready), "BACKSTOP_STRIPE_TIMEOUT": str(ANSWER_SECONDS)}
    return replace(part, name=name, command=command, environment=part.environment | more, ready=parts.wrote(ready))


def _wait(started: list[Child]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while late := [child for child in started if not child.ready()]:
        for child in late:
            if child.ended() is not None or time.monotonic() > deadline:
                raise CannotStart(f"{child.part.name} did not start ({steps.last_words(child.log)}): see {child.log}.")
        time.sleep(0.05)
