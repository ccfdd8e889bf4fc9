"""An embedded Valkey (it speaks Redis's protocol) that rings the bells. It keeps nothing: the rows are the work."""

import os
import signal
import socket
import subprocess
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from sandbox.servers import CannotStart, accounts, identities, locks, wheels
from sandbox.servers.lasting import Lasting


class Server:
    """The Valkey of one data directory. Starting it again, or from two processes at once, changes nothing."""

    def __init__(self, *, data: Path, log: Path | None = None) -> None:
        self.data = data.expanduser().absolute()
        self.log = log or self.data.with_name(self.data.name + ".log")
        self._child: Lasting | None = None

    def start(self, *, seconds: float = 30) -> None:
        """Return when the server answers; raises CannotStart."""
        accounts.check_owner(self.data)
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locks.alone(self.data / "lock"):
            deadline = time.monotonic() + seconds
            if not self._answers(b"+PONG"):
                self._end()  # one that hangs
                self._launch()
            while not self._answers(b"+PONG"):
                if self._child and self._child.poll() is not None:
                    raise CannotStart(f"Valkey stopped while starting: see {self.log}.")
                if time.monotonic() > deadline:
                    raise CannotStart(f"Valkey was not ready in time: see {self.log}.")
                time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server if it runs; nothing in it is worth waiting for."""
        self._end()

    def ready(self) -> bool:
        """Say whether the server answers."""
        return self._answers(b"+PONG")

    def pid(self) -> int | None:
        """Return the pid of the server that runs on this very directory, or None."""
        if self._child and self._child.poll() is None:  # asking also ends a zombie of ours
            return self._child.pid
        try:
            pid = int((self.data / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        words = identities.arguments(pid)
        return pid if words and Path(words[0]).name == "valkey-server" and str(self.data) in words else None

    def url(self) -> str:
        """Return the address that redis-py, Django and Celery read alike."""
        return f"unix://{quote(str(self._socket()))}?db=0"

    def _socket(self) -> Path:
        """Return where the socket is; a long path does not fit into a socket's address (104 bytes on macOS)."""
        inside = self.data / "valkey.sock"
        if len(os.fsencode(inside)) < 100:
            return inside
        return Path("/tmp") / f"backstop-{os.geteuid()}-{sha256(os.fsencode(inside)).hexdigest()[:12]}.sock"  # noqa: S108  # mode 0700

    def _launch(self) -> None:
        options = {
            "port": "0",
            "unixsocket": str(self._socket()),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "pidfile": str(self.data / "pid"),
            "set-proc-title": "no",
            "appendonly": "no",
            "save": "",
            "maxmemory": "256mb",
            "maxmemory-policy": "noeviction",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with open(self.log, "ab") as log:
            self._child = Lasting(
                [str(wheels.valkey()), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )

    def _end(self, *, seconds: float = 2) -> None:
        deadline = time.monotonic() + seconds
        if pid := self.pid():
            os.kill(pid, signal.SIGTERM)
        while (pid := self.pid()) and time.monotonic() < deadline:
            time.sleep(0.01)
        if pid:
            os.kill(pid, signal.SIGKILL)
        if self._child:
            self._child.wait(timeout=5)

    def _answers(self, expected: bytes) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as conn:
                conn.settimeout(2)
                conn.connect(str(self._socket()))
                conn.sendall(b"PING\r\n")
                return conn.recv(64).startswith(expected)
        except OSError:
            return False
