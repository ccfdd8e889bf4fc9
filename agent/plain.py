"""What any column, checkpoint and page can hold: text without NUL and lone surrogates, JSON without its pitfalls. Pure."""

import json
import math
from typing import Any

DEEPEST = 20  # levels of nesting
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # what a checkpoint can hold


class NotPlain(ValueError):
    """The text is not one plain JSON object; says why in a sentence for the model."""


def text(value: str) -> str:
    """Return the text with NUL and lone surrogates replaced by U+FFFD."""
    return value.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_object(source: str) -> dict[str, Any]:
    """Return the one JSON object that `source` is, strictly: no repeated keys, no NaN, nothing that cannot be stored."""
    try:
        found = json.loads(source, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except NotPlain:
        raise
    except (ValueError, RecursionError) as error:
        raise NotPlain("The arguments are not complete, valid JSON.") from error
    return checked(found)


def checked(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object that can be stored as it is; raise NotPlain."""
    if not isinstance(value, dict):
        raise NotPlain("The arguments must be one JSON object.")
    _check(value, depth=0)
    return value


def _check(value: Any, *, depth: int) -> None:
    if depth > DEEPEST:
        raise NotPlain("The arguments are nested too deeply.")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_scalar(key)
            _check(item, depth=depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth=depth + 1)
    else:
        _check_scalar(value)


def _check_scalar(value: Any) -> None:
    if isinstance(value, str):
        if text(value) != value:
            raise NotPlain("The arguments hold a NUL or half a character.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise NotPlain("The arguments hold a number that is not finite.")
    elif isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        raise NotPlain("The arguments hold a number that is too large.")
    elif value is not None and not isinstance(value, bool | int | float):
        raise NotPlain("The arguments are not plain JSON.")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotPlain("The arguments name the same key twice.")
    return found


def _refuse_constant(name: str) -> float:
    raise NotPlain("The arguments hold a number that is not finite.")
