"""Run the whole matrix on an instance of its own and print the table: `python -m tests.matrix [--some] [--point NAME]`."""

import argparse
import sys
from collections.abc import Sequence

from tests import stack
from tests.matrix import cases, instances, passes, runs
from tests.matrix.cases import Case
from tests.matrix.runs import Report
from tests.matrix.talks import open_desk
from tests.matrix.waves import Result


def main() -> int:
    """Return 0 when every case was struck and nothing is wrong afterwards."""
    chosen = _chosen()
    with stack.open_folder() as folder:
        try:
            running = instances.up(folder / "instance")
            with open_desk(running) as desk:
                wrong = passes.differences(passes.measure(running, desk))
                _print(f"{len(chosen)} cases.", *wrong)
                report = runs.run(running, desk, chosen)
        finally:
            stack.down(folder / "instance")
    _print(*told(report))
    return 0 if report.fine and not wrong else 1


def _chosen() -> list[Case]:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--some", action="store_true", help="only the cases of `make test`")
    parser.add_argument("--point", default="", help="only points that begin with this")
    asked = parser.parse_args()
    return [case for case in (cases.some() if asked.some else cases.every()) if case.point.startswith(asked.point)]


def told(report: Report) -> list[str]:
    """Return the table, what is wrong, and how long it took."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in report.results:
        groups.setdefault((_name(result.case), result.case.way), []).append(result)
    lines = [f"{'point':<52} {'way':<9} {'occurrences':<12} {'kills':>5}  result"]
    lines += [_line(name, way, results) for (name, way), results in groups.items()]
    lines += [f"{result.case}: {complaint}" for result in report.results for complaint in result.complaints]
    lines += [f"Not ended: {item}" for item in report.unfinished]
    kills = sum(result.killed for result in report.results)
    again = sum(result.again for result in report.results)
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in report.seconds.items())
    lines += [f"{kills} kills ({again} conversations were hit again while they healed); {took}."]
    lines += ["check_invariants: " + (report.invariants.stdout + report.invariants.stderr).strip()]
    return lines


def _name(case: Case) -> str:
    return case.point + (f" while {case.asleep.partition(':')[0]} sleeps" if case.asleep else "")


def _line(name: str, way: str, results: Sequence[Result]) -> str:
    numbers = ", ".join(str(result.case.occurrence) for result in results)
    fine = all(result.killed and not result.complaints for result in results)
    kills = sum(result.killed for result in results)
    return f"{name:<52} {way:<9} {numbers:<12} {kills:>5}  {'once, ended' if fine else 'WRONG'}"


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
