"""Measure the outbox, and print one line of JSON for each question: `python -m tests.bench [--quick] [--only rate]`."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.bench import claims, latencies, places, rates

Question = Callable[[str, bool], dict[str, Any]]


def rate(admin: str, quick: bool) -> dict[str, Any]:
    """Measure how many messages are settled in a second, beside a known queue."""
    return rates.compare(admin, messages=500 if quick else 3000, hands=8, runs=1 if quick else 3)


def claim(admin: str, quick: bool) -> dict[str, Any]:
    """Measure what a claim reads, however much is finished or waits."""
    return claims.compare(admin, finished=20_000 if quick else 1_000_000, waiting=2_000 if quick else 20_000)


def latency(admin: str, quick: bool) -> dict[str, Any]:
    """Measure how long after its commit a charge reaches the provider."""
    return latencies.measure(admin, charges=20 if quick else 200)


QUESTIONS: dict[str, Question] = {"rate": rate, "claim": claim, "latency": latency}


def main() -> int:
    """Return 0 when every bar is met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little of everything: whether it works, not how fast it is")
    parser.add_argument("--only", choices=QUESTIONS)
    asked = parser.parse_args()
    fine = True
    with places.server() as admin:
        for name, question in QUESTIONS.items():
            if asked.only in (None, name):
                answer = question(admin, asked.quick)
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
                fine = fine and answer["fine"]
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
