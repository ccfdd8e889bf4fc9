"""What goes wrong with calls to the provider, and how often: rules of the sandbox's fault API that follow from a seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

SHARE = 0.45  # of all calls
LATER = 0.5  # seconds, in which hours of the provider's clock may pass
SLOW, TOO_SLOW = 0.3, 1.7  # seconds: with an answer in time, and later than anybody waits (places.ANSWER_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One kind: its name for people, the sandbox's words for it, and how often it comes among the others."""

    name: str
    when: str
    mode: str
    weight: int
    seconds: float = 0.0


# In the order in which a call comes by them: before, during and after it is carried out.
POSTS = (
    Failure(name="dropped before it was accepted", when="before", mode="drop", weight=6),
    Failure(name="409: the key is in use", when="before", mode="409", weight=4),
    Failure(name="429: too many requests", when="before", mode="429", weight=2),
    Failure(name="500 without effect", when="during", mode="500", weight=5),
    Failure(name="500 with effect", when="during", mode="500_effect", weight=6),
    Failure(name="500, and an effect later", when="during", mode="500_later", weight=3, seconds=LATER),
    Failure(name="dropped after it was accepted", when="during", mode="drop", weight=4),
    Failure(name="dropped, and carried out later", when="during", mode="drop", weight=2, seconds=LATER),
    Failure(name="answer dropped", when="after", mode="drop", weight=6),
    Failure(name="answer replaced by a 502", when="after", mode="502", weight=3),
    Failure(name="answer is garbage", when="after", mode="garbage", weight=3),
    Failure(name="answer torn", when="after", mode="trunc", weight=2),
    Failure(name="slow", when="after", mode="sleep", weight=2, seconds=SLOW),
    Failure(name="slower than anybody waits", when="after", mode="sleep", weight=2, seconds=TOO_SLOW),
)
GETS = (
    Failure(name="dropped before it was accepted", when="before", mode="drop", weight=10),
    Failure(name="500 without effect", when="before", mode="500", weight=8),
    Failure(name="429: too many requests", when="before", mode="429", weight=2),
    Failure(name="answer dropped", when="after", mode="drop", weight=8),
    Failure(name="answer replaced by a 502", when="after", mode="502", weight=6),
    Failure(name="answer is garbage", when="after", mode="garbage", weight=6),
    Failure(name="answer torn", when="after", mode="trunc", weight=2),
    Failure(name="slow", when="after", mode="sleep", weight=2, seconds=SLOW),
    Failure(name="slower than anybody waits", when="after", mode="sleep", weight=1, seconds=TOO_SLOW),
)


def rules(*, seed: int, share: float = SHARE) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each failure's name and the rule that makes it; together they strike `share` of all calls."""
    dice = Random(f"{seed}:failures")  # noqa: S311 - a plan that can be had again, not a secret
    for method, kinds in (("POST", POSTS), ("GET", GETS)):
        whole, left = sum(kind.weight for kind in kinds), 1.0
        for kind in kinds:
            wanted = share * kind.weight / whole
            # A call comes to a rule only if none before it has struck.
            rule = {"when": kind.when, "mode": kind.mode, "method": method, "probability": wanted / left, "count": None}
            left -= wanted
            yield kind.name, rule | {"seconds": kind.seconds, "seed": dice.randrange(1_000_000)}
