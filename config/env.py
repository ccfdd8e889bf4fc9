"""Strict readers of environment variables: a wrong or missing value ends the start with one sentence."""

import os
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    """Return the variable, a secret from the file that `NAME_FILE` names, or the default."""
    if f"{name}_FILE" in os.environ:
        return Path(os.environ[f"{name}_FILE"]).read_text().strip()
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is not set: give it a value in the environment.")
    return value


def insist(wanted: Mapping[str, tuple[str, object]]) -> None:
    """Raise one sentence for each variable that is not set and known from nowhere else: name → (what to give, known value)."""
    missing = [
        f"{name} is not set: {hint}."
        for name, (hint, known) in wanted.items()
        if not (os.environ.get(name) or os.environ.get(f"{name}_FILE") or known)
    ]
    if missing:
        raise ImproperlyConfigured("\n".join(missing))


def forbid(unwanted: Mapping[str, str]) -> None:
    """Raise one sentence for each variable that is set and must not be: name → why."""
    set_here = {name: reason for name, reason in unwanted.items() if os.environ.get(name)}
    if found := [f"{name} is set, and {reason}: unset it in production." for name, reason in set_here.items()]:
        raise ImproperlyConfigured("\n".join(found))


def flag(name: str, default: bool = False) -> bool:
    """Return a switch; only `true` and `false` (any case) and their short forms are understood."""
    value = os.environ.get(name, "").strip().lower()
    known: Mapping[str, bool] = {"": default, "true": True, "1": True, "false": False, "0": False}
    if value not in known:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return known[value]


def choice(name: str, among: tuple[str, ...], default: str = "") -> str:
    """Return one of these words."""
    value = os.environ.get(name, "").strip().lower() or default
    if value and value not in among:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(among)}, not {value!r}.")
    return value


def number(name: str, default: int) -> int:
    """Return a whole number."""
    value = os.environ.get(name, "").strip() or str(default)
    if not value.lstrip("-").isdigit():
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.")
    return int(value)


def words(name: str, default: str = "") -> list[str]:
    """Return a comma-separated list without its empty entries."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def rates(name: str) -> dict[str, tuple[int, int]]:
    """Return how many a minute, and how many at once, by what they are counted for: `stripe:1200:40,email:60:10`."""
    found = {}
    for word in words(name):
        kind, *numbers = word.split(":")
        if len(numbers) != 2 or not all(number.isdecimal() and int(number) for number in numbers):
            raise ImproperlyConfigured(f"{name} is destination:messages a minute:messages at once, not {word!r}.")
        found[kind] = (int(numbers[0]), int(numbers[1]))
    return found
