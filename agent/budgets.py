"""What one turn may use before a person is asked. Pure: a turn goes in, a turn or a sentence comes out."""

from dataclasses import dataclass
from typing import Any

# JSON-like, because it lives in the thread's state: {"model_calls", "tokens", "seconds", "failures": {fingerprint: times}}
Turn = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a turn may use: from a staff message, or a person's decision, to the answer."""

    model_calls: int = 12
    tokens: int = 200_000
    seconds: float = 120.0  # of work; waiting for a person or for a worker does not count
    same_failure: int = 3  # times that the very same step may fail


def new_turn() -> Turn:
    """Return a turn that has used nothing."""
    return {"model_calls": 0, "tokens": 0, "seconds": 0.0, "failures": {}}


def after_model(turn: Turn, *, tokens: int, seconds: float) -> Turn:
    """Count one call of the model."""
    return turn | {
        "model_calls": turn["model_calls"] + 1,
        "tokens": turn["tokens"] + tokens,
        "seconds": turn["seconds"] + seconds,
    }


def after_tools(turn: Turn, *, seconds: float, failure: str | None = None) -> Turn:
    """Count one step; `failure` is the fingerprint of a step that failed."""
    failures = dict(turn["failures"])
    if failure:
        failures[failure] = failures.get(failure, 0) + 1
    return turn | {"seconds": turn["seconds"] + seconds, "failures": failures}


def seconds_left(turn: Turn, *, limits: Limits) -> float:
    """Return how long the next answer of the model may take."""
    return max(0.0, limits.seconds - turn["seconds"])


def exceeded(turn: Turn, *, limits: Limits) -> str | None:
    """Return why the turn has to end here, in a sentence for staff and reviewers, or None."""
    if max(turn["failures"].values(), default=0) >= limits.same_failure:
        return f"The agent sent the same failing step {limits.same_failure} times in this turn."
    if turn["model_calls"] >= limits.model_calls:
        return f"The agent thought {limits.model_calls} times about this request without finishing it."
    if turn["tokens"] >= limits.tokens:
        return f"The agent used more than {limits.tokens:,} tokens on this request."
    if turn["seconds"] >= limits.seconds:
        return f"The agent worked more than {limits.seconds:.0f} seconds on this request."
    return None
