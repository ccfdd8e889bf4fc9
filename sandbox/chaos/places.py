"""The instance that is harmed: one of our own that is made and taken away, or one that runs in a given folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import requests
from django.conf import settings

from sandbox.servers import CannotStart, identities, postgres, valkey
from sandbox.supervisor import endings, instances, reports
from sandbox.supervisor.records import Record

# What the environment says about real things is not for an instance that is harmed.
NOT_OURS = (
    "DATABASE_URL", "REDIS_URL", "STRIPE_API_KEY", "STRIPE_API_BASE", "STRIPE_WEBHOOK_SECRETS", "STRIPE_MODE",
    "DJANGO_SECRET_KEY",
    "BACKSTOP_DATA", "BACKSTOP_LOGIN", "BACKSTOP_MODEL", "BACKSTOP_MODEL_BASE_URL", "BACKSTOP_FAULT",
    "EMAIL_HOST", "EMAIL_HOST_PASSWORD", "BACKSTOP_NOTIFY_EMAIL", "BACKSTOP_NOTIFY_CHAT", "BACKSTOP_NOTIFY_WEBHOOK",
)  # fmt: skip
TIMEOUT = (2, 3)  # seconds: to connect, to answer; a part that stands still must not hold up the other faults


class Place:
    """One instance: its processes, its database and its Stripe sandbox. `keep` leaves the files of our own."""

    def __init__(self, data: Path) -> None:
        self.data, self.keep = data, False
        self.content = instances.read(data)
        self.address = instances.address(self.content)
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers["Authorization"] = f"Bearer {self.content['stripe']['api_key']}"

    def process(self, part: str) -> psutil.Process | None:
        """Return the process of a part that lives, or None."""
        if part in ("postgres", "valkey"):
            pid = self.postgres().postmaster() if part == "postgres" else valkey.Server(data=self.data / part).pid()
            identity = identities.of(pid) if pid else None
        else:
            identity = Record.of(self.data).children.get(part)
        return identities.living(identity) if identity else None

    def postgres(self) -> postgres.Server:
        """Return the embedded server."""
        return postgres.Server(data=self.data / "postgres")

    def connect(self, login: str) -> "psycopg.Connection[Any]":
        """Return an autocommit connection as a login; close it."""
        return psycopg.connect(self.content["database"][login], autocommit=True, connect_timeout=5)

    def sandbox(self, method: str, path: str, wish: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return what the Stripe sandbox's control API answers; None while it does not."""
        address = f"{self.content['stripe']['api_base']}/_sandbox/{path}"
        try:
            answer = self._http.request(method, address, json=wish, timeout=TIMEOUT)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
        except (requests.RequestException, ValueError):
            return None
        return found

    def login(self, role: str) -> tuple[str, str]:
        """Return name and password of the person with a role."""
        return next((who["name"], who["password"]) for who in self.content["logins"] if who["role"] == role)

    def works(self) -> bool:
        """Say whether every part works."""
        return str(reports.status(self.data)["state"]) == "ready"


@contextmanager
def own(**more: str) -> Iterator[Place]:
    """Start an instance in a folder of its own, with `more` in its environment; stop it and take the folder away afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="backstop-chaos-"))
    folder.chmod(0o755)  # PostgreSQL may run as another account; the secrets in it have modes of their own
    data, keep = folder / "instance", False
    try:
        done = manage("up", "--data", str(data), "--port", "0", "--detach", **more)
        if done.returncode:
            raise CannotStart(f"The instance did not start: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        place = Place(data)
        yield place
        keep = place.keep
    finally:
        endings.down(data)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def given(data: Path) -> Place:
    """Return the instance that runs in a folder; raise CannotStart when it must not, or cannot, be harmed."""
    if not instances.read(data):
        raise CannotStart(f"{data} holds no instance.")
    if not instances.is_embedded(data):
        raise CannotStart(f"The instance of {data} uses real things: only one with embedded servers is harmed.")
    if (state := reports.status(data)["state"]) != "ready":
        raise CannotStart(f"The instance of {data} is {state}: start it with `manage.py up --data {data} --detach`.")
    return Place(data)


def manage(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours in a process of its own, with `more` in its environment."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS} | more
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
