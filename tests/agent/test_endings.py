"""Why a run ended, as lists and reviewers read it."""

import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout

from agent import endings
from agent.checkpoints import ClockWentBack


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (endings.OtherGraph(), endings.OTHER_GRAPH),
        (endings.Unreadable(), endings.UNREADABLE),
        (ClockWentBack(), endings.CLOCKS),
        (errors.AdminShutdown(), endings.DATABASE),
        (errors.ReadOnlySqlTransaction(), endings.DATABASE),
        (PoolTimeout(), endings.DATABASE),
        (errors.UndefinedColumn(), endings.UNEXPECTED),
        (KeyError("question"), endings.UNEXPECTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_it_says_why_a_run_ended(error: Exception, sentence: str) -> None:
    assert endings.why(error) == sentence
