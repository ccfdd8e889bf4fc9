"""Thousands of small cases in one test: a test for each costs more than what it looks at."""

from collections.abc import Callable, Iterable
from typing import Any


def wrong(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> list[str]:
    """Check every case, and return each that failed with what was found, in the order given."""
    return [said for case in cases if (said := _said(check, case))]


def _said(check: Callable[..., None], case: tuple[Any, ...]) -> str:
    try:
        check(*case)
    except AssertionError as fault:
        return f"{case}: {fault}"
    return ""
