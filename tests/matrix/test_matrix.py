"""A part of the matrix, every fault point among it: each process is killed there and each conversation ends once.

`make matrix` runs all of it.
"""

from collections.abc import Iterator

import pytest

from ledger import faults
from tests import stack
from tests.matrix import cases, instances, passes, runs
from tests.matrix.cases import Case
from tests.matrix.runs import Report
from tests.matrix.talks import open_desk

LONG = 900  # seconds for the first test, which runs them all
pytestmark = pytest.mark.timeout(LONG)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    """Return what became of the cases; they share an instance and heal beside one another."""
    with stack.open_folder() as folder:
        try:
            running = instances.up(folder / "instance")
            with open_desk(running) as desk:
                assert passes.differences(passes.measure(running, desk)) == []
                yield runs.run(running, desk, cases.some())
        finally:
            stack.down(folder / "instance")


@pytest.mark.parametrize("case", cases.some(), ids=str)
def test_a_conversation_ends_once_though_a_process_is_killed_at(report: Report, case: Case) -> None:
    (result,) = [result for result in report.results if result.case == case]
    assert (result.killed, result.complaints) == (True, [])


def test_everything_comes_to_its_end(report: Report) -> None:
    assert report.unfinished == []


def test_no_invariant_is_violated(report: Report) -> None:
    assert report.invariants.returncode == 0, report.invariants.stdout + report.invariants.stderr


def test_at_least_thirty_are_run_and_every_point_is_among_them() -> None:
    """Those that a conversation comes by only if somebody asks, or never, are in test_besides.py."""
    assert len(cases.some()) >= 30
    passed = faults.POINTS.keys() - faults.BESIDES.keys()
    assert {case.point for case in cases.some()} == passed
    assert {case.point for case in cases.every()} == passed | {point for point in faults.BESIDES if point.startswith("request.")}
