"""The web process as it really runs: uvicorn on the test's database, in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.waiting import until

BASE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Server:
    """A running web process."""

    address: str
    process: "subprocess.Popen[bytes]"

    def is_up(self) -> bool:
        """Return whether it answers."""
        try:
            return httpx.get(f"{self.address}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        """Ask it to stop, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=15)


@contextmanager
def serving(*, port: int = 0, **env: str) -> Iterator[Server]:
    """Start uvicorn as `manage.py up` does, with the test process's own database unless `env` says otherwise."""
    port = port or free_port()
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--timeout-graceful-shutdown", "10", "--log-level", "warning"], cwd=BASE, env=os.environ | env
    )
    server = Server(address=f"http://127.0.0.1:{port}", process=process)
    try:
        until(server.is_up, seconds=60, what="a web server")
        yield server
    finally:
        if process.poll() is None:
            server.stop()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
