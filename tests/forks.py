"""Processes that begin with the libraries imported: forked from one that did nothing else, so a test may start and kill many.

Settings and whatever of ours reads them are imported anew in each, with the environment that it is given.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

# What most of the time of a start goes to; one that is missing here is imported by each process itself.
LIBRARIES = (
    "celery", "celery.app.amqp", "celery.app.base", "celery.app.events", "celery.app.trace", "celery.apps.worker",
    "celery.backends.base", "celery.bin.worker", "celery.concurrency.thread", "celery.events.dispatcher", "celery.result",
    "celery.worker.consumer", "celery.worker.control", "celery.worker.loops", "celery.worker.worker", "csp.constants",
    "csp.middleware", "dateutil.parser", "django.contrib.auth.hashers", "django.contrib.postgres.fields",
    "django.contrib.sessions.middleware", "django.contrib.staticfiles.storage", "django.core.cache.backends.locmem",
    "django.core.handlers.asgi", "django.core.management.commands.migrate", "django.db.backends.postgresql.base",
    "django.db.migrations", "django.db.migrations.autodetector", "django.forms", "django.middleware.common",
    "django.template", "django.template.defaulttags", "django.urls", "django.views.debug", "django.views.decorators.csrf",
    "django.views.i18n", "django_htmx.middleware", "httpx", "kombu.asynchronous.hub", "kombu.pools", "kombu.transport.redis",
    "langchain_core.language_models.chat_models", "langchain_core.tools", "langgraph.checkpoint.postgres", "langgraph.graph",
    "langgraph.prebuilt.tool_node", "psycopg_pool", "pydantic", "redis", "rest_framework", "rest_framework.serializers",
    "smtplib", "sqlite3", "stripe", "stripe._stripe_client", "structlog", "tzlocal", "uvicorn", "whitenoise.middleware",
    "yaml",
)  # fmt: skip
OURS = ("sandbox.offline.model", "sandbox.stripe.api", "sandbox.stripe.control", "sandbox.stripe.server")  # read no setting
BASE = Path(__file__).resolve().parent.parent
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([*LIBRARIES, *OURS])


def start(main: Callable[..., Any], *arguments: Any, env: Mapping[str, str], log: Path | None = None) -> BaseProcess:
    """Start a process that sets Django up and calls `main`, a function of a module; what it prints goes to `log`, or nowhere."""
    process = PROCESSES.Process(target=_begin, args=(main, arguments, dict(env), log), daemon=True)
    process.start()
    return process


def run(*words: str, env: Mapping[str, str], timeout: float = 170) -> "subprocess.CompletedProcess[str]":
    """Run `python words…`, such as `manage.py status` or `-m celery`, and return what it printed; `timeout` is in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        printed, complained = Path(folder) / "stdout", Path(folder) / "stderr"
        process = PROCESSES.Process(target=_program, args=(words, dict(env), printed, complained), daemon=True)
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(words, timeout, printed.read_text(), complained.read_text())
        return subprocess.CompletedProcess(words, process.exitcode, printed.read_text(), complained.read_text())


class Program:
    """A process that runs a module as `python -m` does, and what is done with it, in the words of `subprocess`."""

    def __init__(self, module: str, *words: str, env: Mapping[str, str], log: Path | None = None) -> None:
        self._process = PROCESSES.Process(target=_run, args=(module, words, dict(env), log), daemon=True)
        self._process.start()
        self.pid: int = self._process.pid or 0

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int | None:
        """Return its exit code when it has ended; None when it has not by then (seconds)."""
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _run(module: str, words: tuple[str, ...], env: dict[str, str], log: Path | None) -> None:
    _become(env, log)
    _watch(env)
    _begin_module(module, *words)


def _program(words: tuple[str, ...], env: dict[str, str], printed: Path, complained: Path) -> None:
    os.chdir(BASE)
    _become(env, printed, complained)
    if words[0] == "-m":
        return _begin_module(*words[1:])
    sys.argv = list(words)
    runpy.run_path(words[0], run_name="__main__")


def _begin_module(module: str, *words: str) -> None:
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _become(env: dict[str, str], *logs: Path | None) -> None:
    """Have the environment; what is printed goes to the first file, what is complained of to the last, or nowhere."""
    os.environ.clear()
    os.environ.update(env)
    for stream, log in ((1, logs[0]), (2, logs[-1])):
        os.dup2(os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)


def _watch(env: Mapping[str, str]) -> None:
    """Catch whoever contacts anything in a transaction; the test's own process hears of it."""
    from tests import trap

    trap.install(env.get("TRAP_FOLDER", env["BACKSTOP_DATA"]))


def _begin(main: Callable[..., Any], arguments: tuple[Any, ...], env: dict[str, str], log: Path | None) -> None:
    _become(env, log)
    import django

    _watch(env)
    django.setup()
    main(*arguments)
