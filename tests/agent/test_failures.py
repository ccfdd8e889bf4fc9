"""The classifier is total: every class of psycopg's errors, in every phase, has one owner."""

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout

from agent.failures import Kind, Phase, classify
from ledger.refusals import Refusal

EVERY = sorted(
    {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, psycopg.Error)},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("phase", list(Phase))
def test_it_knows_every_database_error(phase: Phase) -> None:
    assert len(EVERY) > 200
    assert {classify(phase=phase, error=kind("x")) for kind in EVERY} <= set(Kind)


@pytest.mark.parametrize(
    ("kind", "phase", "expected"),
    [
        (errors.UniqueViolation, Phase.CALL, Kind.MODEL),
        (errors.CheckViolation, Phase.CALL, Kind.MODEL),
        (errors.NumericValueOutOfRange, Phase.CALL, Kind.MODEL),
        (errors.InsufficientPrivilege, Phase.CALL, Kind.MODEL),
        (errors.QueryCanceled, Phase.CALL, Kind.MODEL),
        (errors.LockNotAvailable, Phase.CALL, Kind.MODEL),
        (errors.LockNotAvailable, Phase.BEGIN, Kind.INFRASTRUCTURE),
        (errors.QueryCanceled, Phase.COMMIT, Kind.INFRASTRUCTURE),
        (errors.SerializationFailure, Phase.COMMIT, Kind.INFRASTRUCTURE),
        (errors.DeadlockDetected, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.AdminShutdown, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.IdleInTransactionSessionTimeout, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.TransactionTimeout, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.ReadOnlySqlTransaction, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.TooManyConnections, Phase.BEGIN, Kind.INFRASTRUCTURE),
        (errors.DiskFull, Phase.CALL, Kind.INFRASTRUCTURE),
        (errors.UndefinedTable, Phase.CALL, Kind.BUG),
        (errors.SyntaxError, Phase.CALL, Kind.BUG),
        (errors.InFailedSqlTransaction, Phase.CALL, Kind.BUG),
        (errors.UniqueViolation, Phase.COMMIT, Kind.BUG),
        (psycopg.OperationalError, Phase.CALL, Kind.INFRASTRUCTURE),
        (psycopg.InterfaceError, Phase.BEGIN, Kind.INFRASTRUCTURE),
    ],
)
def test_it_gives_each_error_to_the_right_owner(kind: type[psycopg.Error], phase: Phase, expected: Kind) -> None:
    assert classify(phase=phase, error=kind("x")) is expected


def own(state: str) -> psycopg.Error:
    """Return an error with one of our own SQLSTATEs."""
    error = psycopg.DatabaseError("x")
    error.sqlstate = state
    return error


def test_it_knows_our_own_states() -> None:
    assert {classify(phase=phase, error=own("BS001")) for phase in Phase} == {Kind.LOST_LEASE}
    assert classify(phase=Phase.COMMIT, error=own("BS002")) is Kind.LIMIT
    assert classify(phase=Phase.CALL, error=own("BS002")) is Kind.BUG  # no tool adds to the sums


def test_it_gives_what_is_not_a_database_error_its_owner() -> None:
    assert classify(phase=Phase.CALL, error=Refusal("No.")) is Kind.MODEL
    assert classify(phase=Phase.BEGIN, error=PoolTimeout("x")) is Kind.INFRASTRUCTURE
    assert classify(phase=Phase.CALL, error=ZeroDivisionError()) is Kind.BUG
