"""The faults of a plan: what is hit when. They follow from the seed alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

SPARE = "spare"  # a second agent worker, so that somebody takes over while the first one is stopped
# How often each part is killed, by what it costs to start it again.
PARTS: Mapping[str, int] = {
    "agent": 3, SPARE: 3, "outbox": 4, "web": 3, "keeper": 1, "beat": 1, "stripe": 4, "postgres": 3, "valkey": 4,
}  # fmt: skip
KILL_EVERY = (1.1, 2.1)  # seconds between two kills
HARM_EVERY = (1.5, 4.5)  # seconds between two faults of other kinds
LEASE = (33.0, 38.0)  # longer than the lease of a thread
RUN = (
    "run.leased", "run.taken", "checkpoint.put", "checkpoint.put_inside", "checkpoint.put_done", "checkpoint.writes",
    "checkpoint.writes_inside", "checkpoint.writes_done", "batch.begin", "batch.savepoint", "batch.write", "batch.release",
    "batch.commit", "batch.committed", "question.asked", "question.opened", "preview.tried", "preview.made",
    "preview.kept", "decision.read", "decision.resumed", "run.ended", "run.released",
)  # fmt: skip
TOO_LATE = ("expiry.decided", "prune.taken", "prune.done")  # nobody comes by these within hours
POINTS: Mapping[str, Sequence[str]] = {
    "agent": RUN,
    SPARE: RUN,
    "outbox": (
        "send.claimed", "send.begun", "send.answered", "send.advanced", "send.settling", "send.settled", "webhook.taken",
        "webhook.adopted",
    ),
    "web": ("words.committed", "decision.committed", "webhook.verified", "webhook.stored"),
}  # fmt: skip
# What a part comes by only when something was lost, refused or asked; one in five is armed with one of these.
SELDOM: Mapping[str, Sequence[str]] = {
    "outbox": (
        "send.looked_up", "request.taken", "request.carried", "request.done", "destination.heard", "destination.resumed",
        "scan.taken", "scan.settled", "scan.looked",
    ),
    "web": ("request.asked",),
}  # fmt: skip
# How long a part stands still. The outbox's lease is too long for a run; tests stop its worker for longer.
PAUSES: Mapping[str, tuple[float, float]] = {
    "agent": LEASE, SPARE: LEASE, "outbox": (5, 20), "web": (2, 5), "stripe": (3, 25), "valkey": (2, 7), "beat": (10, 30),
}  # fmt: skip
# An error that is kept for a refund's key lasts as long as the key, a day: it would be hours until a person is asked.
PROVIDER = (
    {"when": "before", "mode": "drop"},
    {"when": "before", "mode": "429"},
    {"when": "before", "mode": "409"},
    {"when": "before", "mode": "500"},
    {"when": "before", "mode": "502"},
    {"when": "during", "mode": "500", "path": "/v1/payment_intents.*"},
    {"when": "during", "mode": "500_effect"},
    {"when": "during", "mode": "drop", "seconds": 2},
    {"when": "during", "mode": "sleep", "seconds": 3},
    {"when": "after", "mode": "drop"},
    {"when": "after", "mode": "500"},
    {"when": "after", "mode": "502"},
    {"when": "after", "mode": "garbage"},
    {"when": "after", "mode": "trunc"},
    {"when": "after", "mode": "sleep", "seconds": 22},  # longer than anybody waits for an answer
)
WEBHOOKS = (
    {"action": "duplicate", "copies": 3},
    {"action": "reorder"},
    {"action": "delay", "seconds": 5},
    {"action": "normal"},
)
CLOCK = (70, 70, 3_700, 90_000)  # seconds: a payment under way ends; a look-up is due; a key is forgotten


@dataclass(frozen=True, kw_only=True)
class Strike:
    """One fault: when (seconds from the start), what, on which part, and what else it needs."""

    at: float
    kind: str
    part: str = ""
    fault: str = ""  # of BACKSTOP_FAULT
    seconds: float = 0
    wish: Mapping[str, Any] = field(default_factory=dict)  # of the sandbox's control API


def plan(*, seed: int, seconds: float, parts: Sequence[str]) -> tuple[Strike, ...]:
    """Return the faults of a run, in order."""
    dice = Random(f"{seed}:strikes")  # noqa: S311 - a plan that can be had again
    dealt = _dealt(dice, parts)
    kills = [_kill(dice, at, next(dealt)) for at in _times(dice, seconds, KILL_EVERY)]
    harms = [harm for at in _times(dice, seconds, HARM_EVERY) if (harm := _harm(dice, at, parts))]
    return tuple(sorted([*kills, *harms], key=lambda strike: strike.at))


def _times(dice: Random, seconds: float, every: tuple[float, float]) -> Iterator[float]:
    at = dice.uniform(*every)
    while at < seconds:
        yield round(at, 2)
        at += dice.uniform(*every)


def _dealt(dice: Random, parts: Sequence[str]) -> Iterator[str]:
    """Yield parts by their weights without end; none is left out for longer than a deck has cards."""
    while deck := [part for part in parts for _ in range(PARTS[part])]:
        dice.shuffle(deck)
        yield from deck


def _kill(dice: Random, at: float, part: str) -> Strike:
    if part in POINTS and dice.random() < 0.5:
        return Strike(at=at, kind="point", part=part, fault=_fault(dice, part))
    if part == "postgres" and dice.random() < 0.4:
        return Strike(at=at, kind="immediate", part=part)
    return Strike(at=at, kind="kill", part=part)


def _fault(dice: Random, part: str) -> str:
    """Return a point that the part comes by and what happens there; a part that stops itself is let go on by us."""
    action = dice.choices(("kill", "stop", "sleep"), (8, 1, 1))[0]
    if part in SELDOM and dice.random() < 0.2:
        return f"{dice.choice(SELDOM[part])}:1:{action}"
    return f"{dice.choice(POINTS[part])}:{dice.choice((1, 1, 2, 3, 5))}:{action}"


HARMS = (("pause", 4), ("end", 2), ("terminate", 2), ("flush", 2), ("provider", 8), ("webhooks", 2), ("clock", 1))
WHERE = {"terminate": "postgres", "flush": "valkey", "provider": "stripe", "webhooks": "stripe", "clock": "stripe"}


def _harm(dice: Random, at: float, parts: Sequence[str]) -> Strike | None:
    """Return a fault that kills nothing; None when it would hit a part that is to be spared."""
    kind = dice.choices([kind for kind, _ in HARMS], [weight for _, weight in HARMS])[0]
    anywhere = [*PAUSES] if kind == "pause" else [name for name in PARTS if name not in ("postgres", "valkey")]
    part = WHERE.get(kind) or dice.choice(anywhere)
    seconds = round(dice.uniform(*PAUSES[part]), 1) if kind == "pause" else 0
    strike = Strike(at=at, kind=kind, part=part, seconds=seconds, wish=_wish(dice, kind))
    return strike if part in parts else None


def _wish(dice: Random, kind: str) -> Mapping[str, Any]:
    """Return what the sandbox's control API is asked for."""
    if kind == "provider":
        return _rule(dice)
    if kind == "webhooks":
        return dice.choice(WEBHOOKS)
    return {"advance": dice.choice(CLOCK)} if kind == "clock" else {}


def _rule(dice: Random) -> dict[str, Any]:
    """Return a rule that strikes some of the next calls, some rules those of look-ups."""
    some = {"count": dice.randint(2, 8), "probability": 0.5, "seed": dice.randrange(1_000_000)}
    wish = dict(dice.choice(PROVIDER)) | some
    return wish | ({"method": "GET"} if dice.random() < 0.2 and wish["when"] != "during" else {})
