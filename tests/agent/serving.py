"""The web process as it really runs: uvicorn on the test's database, in a process of its own."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from tests.forks import Program
from tests.waiting import until


@dataclass(frozen=True)
class Server:
    """A running web process."""

    address: str
    process: Program

    def cookie(self, user: Any) -> Any:
        """Return the cookie of a browser at which the person is logged in."""
        return {"name": settings.SESSION_COOKIE_NAME, "value": session_of(user), "url": self.address}

    def is_up(self) -> bool:
        """Return whether it answers."""
        try:
            return httpx.get(f"{self.address}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int | None:
        """Ask it to stop, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=15)


@contextmanager
def serving(*, port: int = 0, **env: str) -> Iterator[Server]:
    """Start uvicorn as `manage.py up` does, with the test process's own database unless `env` says otherwise."""
    port = port or free_port()
    words = ("config.asgi:application", "--host", "127.0.0.1", "--port", str(port), "--timeout-graceful-shutdown", "10")
    process = Program("uvicorn", *words, "--log-level", "warning", env=os.environ | env)
    server = Server(address=f"http://127.0.0.1:{port}", process=process)
    try:
        until(server.is_up, seconds=60, what="a web server")
        yield server
    finally:
        if process.poll() is None:
            server.stop()


def session_of(user: Any) -> str:
    """Return the session key of a logged-in person."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
