"""Start everything on embedded defaults, or on the real things that the environment names."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from sandbox.supervisor import faults, reports
from sandbox.supervisor.supervision import Supervisor
from sandbox.supervisor.wishes import Stopped, Wish

READY = "BACKSTOP_READY_PIPE"


class Command(BaseCommand):
    help = "Start everything, print the address and the logins, and keep it running until Ctrl-C or `manage.py down`."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Say which instance, where, and whether to stay in the foreground."""
        parser.add_argument(
            "--data", type=Path, default=settings.DATA_DIR, help="directory of this instance (default: %(default)s)"
        )
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on; name others in ALLOWED_HOSTS")
        parser.add_argument("--port", type=int, help="port to listen on (default: the last one, at first 8000; 0: any)")
        parser.add_argument("--detach", action="store_true", help="return when everything is up; stop with `manage.py down`")
        parser.add_argument("--demo", action="store_true", help="load the demo data even with a real Stripe key")

    def handle(self, **options: Any) -> None:
        """Return when everything has been stopped, or is up when detached; exit 1 with one sentence when it cannot start."""
        with faults.told(self.stderr):
            if options["detach"] and READY not in os.environ:
                sys.exit(detach())
            self._supervise(options)

    def _supervise(self, options: dict[str, Any]) -> None:
        data = options["data"].expanduser().absolute()
        given = {name: value for name, value in os.environ.items() if name != READY}
        wish = Wish(
            data=data, directory=settings.BASE_DIR, host=options["host"], port=options["port"], demo=options["demo"], given=given
        )
        supervisor = Supervisor(wish, say=self._say)
        for word in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(word, lambda number, frame: supervisor.stopping.set())
        try:
            if not supervisor.take_over():
                return self._say("\n".join(reports.welcome(data, stop="It was running already.")))
            self._keep_up(supervisor, detached=options["detach"])
        except Stopped:
            self._say("Stopped before everything was up.")
            sys.exit(1)

    def _keep_up(self, supervisor: Supervisor, *, detached: bool) -> None:
        began, data = time.monotonic(), supervisor.data
        try:
            supervisor.start()
            command = "manage.py down" + ("" if data == settings.DATA_DIR else f" --data {data}")
            stop = f"Ready after {time.monotonic() - began:.1f} s. Stop it with `{command}`" + (
                "." if detached else " or Ctrl-C."
            )
            self._say("\n".join(reports.welcome(data, stop=stop)))
            if READY in os.environ:
                leave_terminal(data)
            supervisor.watch()
            self._say("Stopping.")
        finally:
            supervisor.stop()
        self._say("Stopped.")

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody reads any more; the instance goes on
            self.stdout.write(line)
            self.stdout.flush()


def detach() -> int:
    """Run this command again in a session of its own; return when it says that it is up, or with its exit code."""
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, *sys.argv],
        env=os.environ | {READY: str(writing)},
        pass_fds=[writing],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    os.close(writing)

    def stop(number: int, frame: FrameType | None) -> None:
        child.terminate()

    for word in (signal.SIGINT, signal.SIGTERM):
        signal.signal(word, stop)
    with open(reading, "rb") as said:
        return 0 if said.read(1) else child.wait()


def leave_terminal(data: Path) -> None:
    """Tell the waiting command that everything is up, and write to a log from now on."""
    with open(data / "logs" / "supervisor.log", "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    with open(int(os.environ.pop(READY)), "wb") as ready:
        ready.write(b"y")
