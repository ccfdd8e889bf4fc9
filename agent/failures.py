"""What an exception means: a total function from (phase, exception) to who must deal with it."""

from enum import StrEnum

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from ledger.refusals import Refusal


class Kind(StrEnum):
    """Who deals with a failure."""

    MODEL = "model"  # a reason it can correct
    INFRASTRUCTURE = "infrastructure"  # try again, unchanged
    LIMIT = "limit"  # a cumulative limit would be exceeded: ask a person
    LOST_LEASE = "lost_lease"  # another worker owns the thread: stop
    BUG = "bug"  # nothing expected: roll back, record, ask a person


class Phase(StrEnum):
    """Where a batch was when it failed."""

    BEGIN = "begin"  # before the first savepoint
    CALL = "call"  # inside a call's savepoint
    COMMIT = "commit"  # after the last one


class Infrastructure(Exception):
    """The database or the network failed; the batch was not applied, as far as can be known, and may be run again."""


class Bug(Exception):
    """Something failed that nothing expects; the batch was rolled back and must not be run again unseen."""


LEASE_LOST = "BS001"
LIMIT_EXCEEDED = "BS002"
# A tool's statement hit a constraint, a wrong value, a rule of a trigger, or another customer's row.
OF_A_CALL = frozenset({"22", "23"})
RULES = frozenset({"42501", "P0001"})
# The data was busy: the model may try again, but only when the statement was a tool's own.
BUSY = frozenset({"57014", "55P03"})
# Connection, shutdown, resources, serialization, deadlock, idle or transaction timeout, read-only server.
OF_THE_MACHINE = frozenset({"08", "53", "57", "58", "40"})
MACHINE = frozenset({"25P03", "25P04", "25006", "55006", "55000", "XX001", "XX002"})


def classify(*, phase: Phase, error: BaseException) -> Kind:
    """Return who deals with `error`; whatever is not listed is a bug."""
    if isinstance(error, Refusal):
        return Kind.MODEL if phase is Phase.CALL else Kind.BUG
    if isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return Kind.INFRASTRUCTURE
    if isinstance(error, psycopg.Error):
        return _of_database(phase=phase, error=error)
    return Kind.BUG


def _of_database(*, phase: Phase, error: psycopg.Error) -> Kind:
    state = error.sqlstate or ""
    if state == LEASE_LOST:
        return Kind.LOST_LEASE
    if state == LIMIT_EXCEEDED:
        return Kind.LIMIT if phase is Phase.COMMIT else Kind.BUG
    if not state:
        return _without_state(error)
    if state in BUSY:
        return Kind.MODEL if phase is Phase.CALL else Kind.INFRASTRUCTURE
    if state[:2] in OF_THE_MACHINE or state in MACHINE:
        return Kind.INFRASTRUCTURE
    if state[:2] in OF_A_CALL or state in RULES:
        return Kind.MODEL if phase is Phase.CALL else Kind.BUG
    return Kind.BUG


def _without_state(error: psycopg.Error) -> Kind:
    """Decide about an error that the client raised itself: a dead connection, or a value that cannot be sent."""
    if isinstance(error, psycopg.errors.PipelineAborted):
        return Kind.BUG  # the cause was swallowed: see agent/trace.py
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Kind.INFRASTRUCTURE
    return Kind.MODEL if isinstance(error, psycopg.DataError) else Kind.BUG
