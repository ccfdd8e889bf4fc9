"""Faults on request: rules that say which calls fail, when, and how; they live until they are spent or cleared."""

import itertools
import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandbox.stripe import refusals
from sandbox.stripe.exchange import Answer, Call, Json
from sandbox.stripe.refusals import Refused
from sandbox.stripe.store import Transaction

PROXY = {
    "502": b"Bad Gateway",
    "503": b"Service Unavailable",
    "504": b"Gateway Timeout",
}  # pages of what stands in front of Stripe
CUT_AFTER = 30  # bytes of the body that a torn answer still has
MODES = {
    # before: nothing is executed, nothing is saved
    "before": (
        "drop", "400_rate_limit", "401", "403", "409", "409_other", "424", "429", "lock_timeout", "500", *PROXY, "sleep",
    ),
    # during: the key is claimed; 500 is saved without effect, 500_effect with it, 500_later with one that comes `seconds` later;
    # drop hangs up and executes all the same
    "during": ("drop", "429", "lock_timeout", "500", "500_effect", "500_later", "sleep"),
    # after: executed and saved; only the answer is lost, late or torn
    "after": ("drop", "500", *PROXY, "garbage", "trunc", "sleep"),
}  # fmt: skip
CANNED: Mapping[str, Callable[[], Refused]] = {
    "400_rate_limit": lambda: refusals.rate_limited(status=400),
    "401": refusals.key_expired,
    "403": refusals.forbidden,
    "409_other": refusals.conflict,
    "424": refusals.dependency_failed,
    "lock_timeout": refusals.lock_timeout,
    "500": refusals.internal,
}


Operation = Callable[[Transaction], Json]
Later = Callable[[float, Operation], None]  # carries an operation out in so many seconds


class Wire(Protocol):
    """The connection that an answer leaves by."""

    def send(self, answer: Answer, *, cut_after: int | None = None) -> None: ...

    def hang_up(self) -> None: ...


class BadRule(Exception):
    """A fault rule that cannot be."""


@dataclass(kw_only=True)
class Rule:
    """Calls that fail: `count` is how many more (None: until cleared).

    `seconds` is the wait of sleep, of a drop during and of 500_later, and what a 429 tells to wait.
    """

    id: int
    when: str
    mode: str
    method: str = "POST"
    path: str = "/v1/.*"
    count: int | None = 1
    probability: float = 1.0
    seed: int = 0
    seconds: float = 0.0
    struck: int = 0
    dice: random.Random = field(default_factory=random.Random, repr=False)

    def strikes(self, when: str, call: Call) -> bool:
        """Return whether this call fails now, and count it if so."""
        fits = self.when == when and self.method == call.method and re.fullmatch(self.path, call.path)
        if not fits or self.count == 0 or self.dice.random() >= self.probability:
            return False
        self.count = None if self.count is None else self.count - 1
        self.struck += 1
        return True

    def shown(self) -> Json:
        """Return the rule as the control API lists it."""
        return {name: value for name, value in vars(self).items() if name != "dice"}


class Faults:
    """The rules in force; the oldest that fits strikes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._ids = itertools.count(1)

    def add(self, wanted: Json) -> Json:
        """Put a rule in force and return it with its id."""
        rule = rule_of(wanted, rule_id=next(self._ids))
        with self._lock:
            self._rules.append(rule)
        return rule.shown()

    def listed(self) -> list[Json]:
        """Return every rule, spent ones too, with how often it struck."""
        with self._lock:
            return [rule.shown() for rule in self._rules]

    def lift(self, rule_id: int) -> None:
        """Lift one rule, if it is there."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule.id != rule_id]

    def clear(self) -> None:
        """Lift every rule."""
        with self._lock:
            self._rules.clear()

    def strike(self, when: str, call: Call) -> Rule | None:
        """Return the rule that strikes a call at this moment."""
        with self._lock:
            return next((rule for rule in self._rules if rule.strikes(when, call)), None)


KINDS: Mapping[str, Any] = {
    "when": str, "mode": str, "method": str, "path": str, "count": int | None, "probability": int | float, "seed": int,
    "seconds": int | float,
}  # fmt: skip


def rule_of(wanted: Json, *, rule_id: int) -> Rule:
    """Return a checked rule, or raise with one sentence."""
    for name, value in wanted.items():
        if name not in KINDS or not isinstance(value, KINDS[name]):
            raise BadRule(f"A fault rule has no {name} that is {value!r}; it has {', '.join(KINDS)}.")
    if wanted.get("mode") not in MODES.get(str(wanted.get("when")), ()):
        raise BadRule(
            "A fault needs `when` and `mode`: " + "; ".join(f"{when}: {', '.join(modes)}" for when, modes in MODES.items())
        )
    try:
        re.compile(wanted.get("path", ""))
    except re.error as error:
        raise BadRule(f"The path is not a regular expression: {error}.") from error
    if not (0 <= wanted.get("seconds", 0) <= 600 and math.isfinite(wanted.get("probability", 1))):
        raise BadRule("`seconds` is between 0 and 600.")
    return Rule(id=rule_id, dice=random.Random(wanted.get("seed", 0)), **wanted)  # noqa: S311 - a reproducible fault, not a secret


def canned(rule: Rule, *, key: str | None) -> Answer:
    """Return the answer of a fault that is one."""
    if rule.mode in PROXY:
        page = b"<html><body>%s %s</body></html>\n" % (rule.mode.encode(), PROXY[rule.mode])
        return Answer(status=int(rule.mode), body=page, headers={"Content-Type": "text/html"})
    return refusal(rule, key=key).answer()


def refusal(rule: Rule, *, key: str | None) -> Refused:
    """Return Stripe's own error of a fault."""
    if rule.mode == "429":
        return refusals.rate_limited(wait=math.ceil(rule.seconds))
    return refusals.key_in_use(key) if rule.mode == "409" else CANNED[rule.mode]()


def before(rule: Rule | None, *, wire: Wire, key: str | None) -> bool:
    """Do a fault in front of the API; return whether the call ends with it."""
    if rule is None or rule.mode == "sleep":
        time.sleep(rule.seconds if rule else 0)
        return False
    if rule.mode == "drop":
        wire.hang_up()
    else:
        wire.send(canned(rule, key=key))
    return True


def during(rule: Rule | None, *, call: Call, operate: Operation, later: Later) -> Operation:
    """Do a fault between claim and execution, and return the operation with the fault in it."""
    if rule is None:
        return operate
    if rule.mode not in ("sleep", "drop"):
        return lambda tx: _fail(rule, tx, operate, later)
    if rule.mode == "drop":
        call.hang_up()
    time.sleep(rule.seconds)
    return operate


def _fail(rule: Rule, tx: Transaction, operate: Operation, later: Later) -> Json:
    if rule.mode == "500_later":
        later(rule.seconds, operate)
        raise refusals.internal()
    if rule.mode != "500_effect":
        raise refusal(rule, key=None)
    try:
        operate(tx)
    except Refused as refused:
        raise refusals.internal(effect_stays=refused.effect_stays) from refused
    raise refusals.internal(effect_stays=True)


def after(rule: Rule | None, *, wire: Wire, answer: Answer) -> None:
    """Deliver the answer of an executed call, or what the fault leaves of it."""
    if rule is None or rule.mode == "sleep":
        time.sleep(rule.seconds if rule else 0)
        wire.send(answer)
    elif rule.mode == "drop":
        wire.hang_up()
    elif rule.mode == "trunc":
        wire.send(answer, cut_after=CUT_AFTER)
    elif rule.mode == "garbage":
        wire.send(Answer(status=200, body=answer.body[:CUT_AFTER], headers=answer.headers))
    else:
        wire.send(canned(rule, key=None))
