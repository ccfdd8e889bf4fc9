"""What a batch was answered before: by its executions, or by the answers of an abort. Asked inside the batch's transaction."""

import contextlib
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection, Cursor

from agent.plans import Known
from ledger import aborts, executions
from ledger.attempts import Attempt

Asked = tuple[Cursor[Any], Cursor[Any]]


def ask(conn: Connection[Any], attempt: Attempt) -> Asked:
    """Send both questions; in a pipeline their answers come later."""
    return executions.look_up(conn, attempt), aborts.look_up(conn, attempt)


def read(asked: Asked) -> Known | None:
    """Return what was answered, or None. Raises the error of whatever kept the questions from being answered."""
    stored, told = _read(executions.read, asked[0]), _read(aborts.read, asked[1])
    if stored:
        return Known(stored=stored, told=stored[0].told)
    return Known(stored=[], told=told) if told is not None else None


def _read(read: Callable[[Cursor[Any]], Any], cursor: Cursor[Any]) -> Any:
    """Read an answer. A later statement's error may come with it the first time; then it is there all the same."""
    with contextlib.suppress(psycopg.Error):
        return read(cursor)
    return read(cursor)
