"""Processes that begin with the libraries imported: forked from one that did nothing else, so a test may start and kill many.

Settings and our own code are read anew in each, with the environment that it is given.
"""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

# What most of the time of a start goes to; one that is missing here is imported by each process itself.
LIBRARIES = (
    "celery", "django.contrib.auth.hashers", "django.db.backends.postgresql.base", "django.forms", "django.template",
    "django.urls", "httpx", "langchain_core.language_models.chat_models", "langgraph.checkpoint.postgres", "langgraph.graph",
    "psycopg_pool", "pydantic", "redis", "rest_framework", "stripe", "structlog",
)  # fmt: skip
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(list(LIBRARIES))


def start(main: Callable[..., Any], *arguments: Any, env: Mapping[str, str], log: Path | None = None) -> BaseProcess:
    """Start a process that sets Django up and calls `main`, a function of a module; what it prints goes to `log`, or nowhere."""
    process = PROCESSES.Process(target=_begin, args=(main, arguments, dict(env), log), daemon=True)
    process.start()
    return process


def _begin(main: Callable[..., Any], arguments: tuple[Any, ...], env: dict[str, str], log: Path | None) -> None:
    os.environ.clear()
    os.environ.update(env)
    printed = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(printed, stream)
    import django

    from tests import trap

    trap.install(env["BACKSTOP_DATA"])
    django.setup()
    main(*arguments)
