"""Ending what a worker has in hand: each try by itself, or those that end at about the same time in one transaction."""

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import structlog
from psycopg import Connection
from psycopg_pool import ConnectionPool

from ledger import faults
from outbox import backoff, breakers, settling
from outbox.endings import Delivery, Ending
from outbox.leases import LeaseLost, Row
from outbox.outcomes import Outcome
from outbox.transitions import Event

Pool = ConnectionPool[Connection[Any]]
log = structlog.get_logger()

MOST = 50  # tries that end in one transaction: it must not keep a customer's rows for long


def ending(
    message: Row, outcome: Outcome, *, source: str, delivery: Delivery | None = None, event: Event | None = None
) -> Ending:
    """Return how a try ended, and how long it is until the next."""
    wait = _wait(message, outcome)
    return settling.ended(message=message, outcome=outcome, source=source, delivery=delivery, event=event, delay=wait)


def finish(pool: Pool, ended: Ending) -> None:
    """Settle; if the effect on the books fails, keep what is known and let a later attempt, or a person, settle it.

    Raise LeaseLost, or what the database raises: without it nothing can be written, the lease runs out, a look-up follows.
    """
    with pool.connection() as conn:
        _let_others_try(conn, [ended])
        try:
            after = _settled(conn, ended)
        except (LeaseLost, psycopg.OperationalError):
            raise
        except Exception as error:
            log.exception("outbox.message.unsettled", outcome=ended.outcome.kind)
            after = _shelve(conn, ended, error)
    _tell(ended, after)


class Together:
    """Tries of one process that end at about the same time: whoever finds nobody writing writes for all who come meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Ending] = []
        self._writing = False

    def finish(self, pool: Pool, ended: Ending) -> None:
        """Settle, or leave it to the thread that is writing; raises nothing."""
        with self._lock:
            self._waiting.append(ended)
            if self._writing:
                return
            self._writing = True
        while tries := self._next():
            self._write(pool, tries)

    def _next(self) -> list[Ending]:
        with self._lock:
            tries, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._writing = bool(tries)
        return tries

    def _write(self, pool: Pool, tries: list[Ending]) -> None:
        """Settle all at once; if that fails, each by itself, so that one keeps no other from its end."""
        try:
            if len(tries) > 1:
                return self._write_all(pool, tries)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # there is no connection: nothing can be written
                for ended in tries:
                    _leave(ended, error)
                return
            log.warning("outbox.endings.parted", tries=len(tries), error=type(error).__name__)
        except Exception as error:
            log.warning("outbox.endings.parted", tries=len(tries), error=type(error).__name__)
        for ended in tries:
            self._write_one(pool, ended)

    def _write_all(self, pool: Pool, tries: Sequence[Ending]) -> None:
        with pool.connection() as conn:
            _let_others_try(conn, tries)
            after = settling.settle_all(conn, tries)
        for ended in tries:
            with guarded(ended.message):
                _tell(ended, after.get(ended.message["id"]))

    def _write_one(self, pool: Pool, ended: Ending) -> None:
        try:
            with guarded(ended.message):
                finish(pool, ended)
        except psycopg.OperationalError as error:
            _leave(ended, error)


@contextmanager
def guarded(message: Row) -> Iterator[None]:
    """Name the message in what is logged, and let it keep nobody else waiting; only the database's absence is raised.

    A lost lease ends it here. Of what nobody foresaw the lease runs out, and so do the attempts.
    """
    with structlog.contextvars.bound_contextvars(message=message["id"], topic=message["topic"]):
        try:
            yield
        except LeaseLost:
            log.warning("outbox.lease.lost", token=str(message["lease_token"]))
        except psycopg.OperationalError:
            raise
        except Exception:
            log.exception("outbox.message.broke")


def _settled(conn: Connection[Any], ended: Ending, *, quiet: bool = False) -> Row:
    after = settling.settle_all(conn, [ended], quiet=quiet).get(ended.message["id"])
    if after is None:
        raise LeaseLost(f"message {ended.message['id']}")
    return after


def _shelve(conn: Connection[Any], ended: Ending, error: Exception) -> Row:
    """Put a message whose effect failed aside: looked up again later, or dead, once its attempts are used up."""
    message = ended.message
    unsettled = replace(ended.outcome, kind="uncertain", error=f"settling failed: {type(error).__name__}", replayed=False)
    aside = ending(message, unsettled, source="relay", delivery=ended.delivery)
    if aside.outcome.kind == "dead":
        try:  # a person is told, if telling is not what failed
            return _settled(conn, aside)
        except (LeaseLost, psycopg.OperationalError):
            raise
        except Exception:
            log.exception("outbox.message.untold")
    return _settled(conn, aside, quiet=True)


def _let_others_try(conn: Connection[Any], tries: Sequence[Ending]) -> None:
    """Let the next message try a parked destination where the one that should have tried it has not asked it."""
    for ended in tries:
        if ended.message["probing"]:
            breakers.try_next(conn, destination=ended.message["destination"])


def _tell(ended: Ending, after: Row | None) -> None:
    """Log what a message became; raise LeaseLost if nothing was written."""
    if after is None:
        raise LeaseLost(f"message {ended.message['id']}")
    faults.reach("send.settled", thread=after["thread"])
    outcome = ended.outcome
    log.info("outbox.message.settled", state=after["state"], outcome=outcome.kind, source=ended.source, error=outcome.error)


def _leave(ended: Ending, error: Exception) -> None:
    log.warning("outbox.message.left", message=ended.message["id"], error=type(error).__name__)


def _wait(message: Row, outcome: Outcome) -> float:
    """Return the seconds until the next try."""
    if outcome.kind == "accepted":
        return backoff.LOOK_AGAIN
    if breakers.parks(outcome) and not message["spared"]:
        return 0.0  # its destination waits; the next try is another message's, which has been due for longer
    if breakers.turned_away(outcome):
        return min(_delay(attempt=message["spared"] + 1, outcome=outcome), backoff.SLOWED[1])
    return _delay(attempt=message["attempts"], outcome=outcome)


def _delay(*, attempt: int, outcome: Outcome) -> float:
    return backoff.delay(attempt=attempt, jitter=random.random(), floor=outcome.retry_after)  # noqa: S311
