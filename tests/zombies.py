"""A worker in a process of its own that stops itself (SIGSTOP) in the middle of something, and goes on when it is told to."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.waiting import until

# What a worker that lost its lease may still write: evidence of what it tried.
EVIDENCE = ("ledger_attempt", "ledger_attempt_outcome", "outbox_delivery")
TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL(%s)
ORDER BY c.relname
"""


@dataclass(frozen=True, kw_only=True)
class Zombie:
    """The process and where it logs to."""

    process: BaseProcess
    log: Path

    def wait_until_stopped(self, *, seconds: float = 40) -> None:
        """Wait for its SIGSTOP; fails when it ended instead."""
        until(lambda: self._stopped(), seconds=seconds, what="a worker that stopped")

    def go_on(self, *, seconds: float = 40) -> int | None:
        """Let it go on to its end, and return its exit code."""
        assert self.process.pid
        os.kill(self.process.pid, signal.SIGCONT)
        return self.ended(seconds=seconds)

    def ended(self, *, seconds: float = 40) -> int | None:
        """Wait for its end, and return its exit code; None when it does not end."""
        self.process.join(seconds)
        return self.process.exitcode

    def events(self) -> list[dict[str, Any]]:
        """Return what it logged, in order."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return what it logged under a name."""
        return [entry for entry in self.events() if entry["event"] == event]

    def _stopped(self) -> bool:
        assert self.process.exitcode is None, f"it ended with {self.process.exitcode}: {self.log.read_text()[-2000:]}"
        return is_stopped(self.process.pid)


def is_stopped(pid: int | None) -> bool:
    """Say whether a process has got SIGSTOP and not gone on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def everything(superuser: "psycopg.Connection[Any]") -> Mapping[str, str]:
    """Return a digest of each table but the evidence, so that any change at all is seen."""
    found = {}
    for (name,) in superuser.execute(TABLES, (list(EVIDENCE),)).fetchall():
        query = sql.SQL("SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM public.{} t").format(sql.Identifier(name))
        [(digest,)] = superuser.execute(query).fetchall()
        found[name] = str(digest)
    return found
