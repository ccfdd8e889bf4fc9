"""How long a message waits."""

import pytest

from outbox import backoff


@pytest.mark.parametrize(
    ("attempt", "limit"), [(1, 2.0), (2, 4.0), (5, 32.0), (11, 2048.0), (12, 3600.0), (40, 3600.0), (10**6, 3600.0)]
)
def test_it_spreads_over_a_doubling_limit(attempt: int, limit: float) -> None:
    assert backoff.delay(attempt=attempt, jitter=0.0) == 0.0
    assert backoff.delay(attempt=attempt, jitter=0.5) == limit / 2
    assert backoff.delay(attempt=attempt, jitter=0.999) < limit


def test_it_waits_at_least_as_long_as_it_was_asked_to() -> None:
    assert backoff.delay(attempt=1, jitter=0.0, floor=30.0) == 30.0
    assert backoff.delay(attempt=10, jitter=0.9, floor=30.0) == pytest.approx(921.6)


def test_it_is_not_told_to_wait_for_ever() -> None:
    assert backoff.delay(attempt=1, jitter=0.0, floor=1e9) == backoff.CAP
