"""The processes of an instance beside PostgreSQL and Valkey: what runs, as which login, and how to tell that it works."""

import http.client
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox.supervisor import environments, instances

Ready = Callable[[int], bool]


@dataclass(frozen=True)
class Part:
    """One process: `ready` is asked with its pid; it gets `patience` seconds to end by itself."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    ready: Ready
    patience: float = 10


def stripe(*, data: Path, content: dict[str, Any]) -> Part:
    """Return the Stripe sandbox; it has no database login."""
    base, key, secret = (content["stripe"][name] for name in ("api_base", "api_key", "webhook_secret"))
    secrets = {"STRIPE_SANDBOX_API_KEY": key, "STRIPE_SANDBOX_WEBHOOK_SECRET": secret}  # `ps` shows a command line to everybody
    return Part(
        name="stripe",
        command=(
            *python("sandbox.stripe"), "--data", str(data / "stripe"), "--port", base.rpartition(":")[2],
            "--webhook-url", instances.address(content) + "/webhooks/stripe",
        ),
        environment=environments.for_child(name="stripe", data=data, login="none") | secrets,
        ready=answers(base + "/_sandbox/health"),
    )  # fmt: skip


def application(*, data: Path, content: dict[str, Any]) -> list[Part]:
    """Return web, the three workers and beat."""
    workers = [("agent", "threads", 16, 20), ("outbox", "threads", 8, 10), ("keeper", "solo", 1, 10)]
    return [
        web(data=data, content=content),
        *(worker(name, data=data, pool=pool, size=size, patience=patience) for name, pool, size, patience in workers),
        beat(data=data),
    ]


def web(*, data: Path, content: dict[str, Any]) -> Part:
    """Return the web server; open streams get five seconds to end."""
    host, port = content["web"]["host"], str(content["web"]["port"])
    command = (
        *python("uvicorn"), "config.asgi:application", "--host", host, "--port", port, "--timeout-graceful-shutdown", "5",
        "--no-access-log", "--no-server-header", "--log-level", "warning",
    )  # fmt: skip
    ready = answers(instances.address(content) + "/healthz")
    return Part(name="web", command=command, environment=environments.for_child(name="web", data=data, login="web"), ready=ready)


def worker(name: str, *, data: Path, pool: str, size: int, patience: float) -> Part:
    """Return the Celery worker of the queue and login `name`."""
    options = f"-P {pool} -c {size} -Q {name} -n {name}@%h --without-gossip --without-mingle --without-heartbeat -l INFO"
    return Part(
        name=name,
        command=(*python("celery"), "-A", "config.celery", "worker", *options.split()),
        environment=environments.for_child(name=name, data=data, login=name),
        ready=wrote(environments.ready_file(data, name)),
        patience=patience,
    )


def beat(*, data: Path) -> Part:
    """Return Celery's clock; it has no database login."""
    options = ("-s", str(data / "run" / "beat-schedule"), "--pidfile=", "-l", "INFO")
    return Part(
        name="beat",
        command=(*python("celery"), "-A", "config.celery", "beat", *options),
        environment=environments.for_child(name="beat", data=data, login="beat"),
        ready=wrote(environments.ready_file(data, "beat")),
    )


def python(module: str) -> tuple[str, ...]:
    """Return the words that run a module with this very Python."""
    return (sys.executable, "-m", module)


def answers(url: str) -> Ready:
    """Return a question: does this address answer 200?"""

    def ask(pid: int) -> bool:
        parts = urlsplit(url)
        conn = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
        try:
            conn.request("GET", parts.path)
            return conn.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            conn.close()

    return ask


def wrote(file: Path) -> Ready:
    """Return a question: has the process written its pid there, as a worker does when it takes work?"""
    return lambda pid: file.exists() and file.read_text() == str(pid)
