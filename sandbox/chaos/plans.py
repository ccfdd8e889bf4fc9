"""The plan of a run: who says what, and what is hit when. The same seed makes the same plan."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from random import Random
from typing import Any

from sandbox.chaos import cast, strikes, words
from sandbox.chaos.strikes import Strike
from sandbox.demo.cast import DemoCustomer

CUSTOMERS = 3  # for each client
PAUSES = {"stop": (0, 1.5), "resume": (0, 1.5), "undo": (0.5, 4)}  # seconds from what is said to a button


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is done in a conversation after a pause (seconds): say something (twice under one id), press Stop, Resume or Undo."""

    pause: float
    does: str  # say, stop, resume, undo
    text: str = ""
    twice: bool = False


@dataclass(frozen=True, kw_only=True)
class Talk:
    """One conversation about a customer, a number of the cast; `patience` is how long (seconds) its end is waited for."""

    customer: int
    steps: tuple[Step, ...]
    patience: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a seed decides."""

    seed: int
    seconds: float
    parts: tuple[str, ...]
    cast: tuple[DemoCustomer, ...]
    clients: tuple[tuple[Talk, ...], ...]
    strikes: tuple[Strike, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return asdict(self)


def make(*, seed: int, clients: int, seconds: float, today: date, parts: Sequence[str] = tuple(strikes.PARTS)) -> Plan:
    """Return the plan of a seed; only the months that were paid depend on the day."""
    members = cast.members(seed=seed, count=CUSTOMERS * clients)
    about = [cast.about(who, today=today) for who in members]
    return Plan(
        seed=seed,
        seconds=seconds,
        parts=tuple(parts),
        cast=members,
        clients=tuple(_client(seed, number, about, seconds=seconds) for number in range(clients)),
        strikes=strikes.plan(seed=seed, seconds=seconds, parts=parts),
    )


def _client(seed: int, number: int, about: Sequence[words.About], *, seconds: float) -> tuple[Talk, ...]:
    """Return more conversations than there is time for."""
    dice = Random(f"{seed}:client:{number}")  # noqa: S311 - a plan that can be had again
    return tuple(_talk(dice, about) for _ in range(int(seconds) + 1))


def _talk(dice: Random, about: Sequence[words.About]) -> Talk:
    customer = dice.randrange(len(about))
    steps = [step for _ in range(dice.choice((1, 1, 2, 3, 5))) for step in _turn(dice, about[customer])]
    return Talk(customer=customer, steps=tuple(steps), patience=dice.choice((0.0, 2.0, 8.0)))


def _turn(dice: Random, about: words.About) -> list[Step]:
    """Return one message, sometimes sent twice, sometimes with a press of a button after it."""
    said = Step(
        pause=round(dice.choice((0.0, 0.2, dice.uniform(0, 3))), 2),
        does="say",
        text=words.request(dice, about=about),
        twice=dice.random() < 0.1,
    )
    if dice.random() >= 0.25:
        return [said]
    button = dice.choice(("stop", "resume", "undo", "undo"))
    return [said, Step(pause=round(dice.uniform(*PAUSES[button]), 2), does=button)]
