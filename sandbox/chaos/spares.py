"""A second agent worker beside the supervised one: while one is stopped or dead, another takes its threads over."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil

from sandbox.chaos.places import Place
from sandbox.chaos.strikes import SPARE
from sandbox.servers import identities
from sandbox.supervisor import environments, parts
from sandbox.supervisor.children import Child
from sandbox.supervisor.records import Record

SIZE = 8  # threads
PATIENCE = 10  # seconds to end by itself


class Spare:
    """The worker, started again whenever it ends."""

    def __init__(self, place: Place, *, directory: Path) -> None:
        ready = environments.ready_file(place.data, SPARE)
        part = parts.worker("agent", data=place.data, pool="threads", size=SIZE, patience=20)
        command = tuple(f"{SPARE}@%h" if word == "agent@%h" else word for word in part.command)
        environment = part.environment | {"BACKSTOP_READY_FILE": str(ready)}
        part = replace(part, name=SPARE, command=command, environment=environment, ready=parts.wrote(ready))
        record = Record(file=place.data / "run" / "spare.json")
        self._child = Child(part, data=place.data, directory=directory, record=record)
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._keep_up, name=SPARE, daemon=True)

    def start(self) -> None:
        """Start it and keep it up."""
        self._child.start()
        self._watch.start()

    def process(self) -> psutil.Process | None:
        """Return its process while it lives."""
        identity = self._child.record.children.get(SPARE)
        return identities.living(identity) if identity else None

    def ready(self) -> bool:
        """Say whether it takes work."""
        return self._child.ready()

    def works(self) -> bool:
        """Say whether it takes work, if it was started at all."""
        return not self._watch.is_alive() or self.ready()

    def stop(self) -> None:
        """End it, if it was started."""
        self._stopping.set()
        if self._watch.is_alive():
            self._watch.join()
        self._child.tell_to_stop()
        self._child.wait(deadline=time.monotonic() + PATIENCE)

    def _keep_up(self) -> None:
        while not self._stopping.wait(0.5):
            self._child.revive()
