"""How JSON enters: strictly. What PostgreSQL, Python or a reader would understand differently is refused with one sentence."""

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

DEEPEST = 32


class StrictJSONParser(BaseParser):
    """At most 64 kB and 32 levels; no repeated key, NaN, NUL or lone surrogate. Anything else is 400 (413 when too big)."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Return the parsed body."""
        limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise RequestDataTooBig("The body is over the limit.")
        return parse(body)


def parse(body: bytes) -> Any:
    """Return the JSON value in `body`; raise ParseError with a sentence for whatever is not plain, strict JSON."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise ParseError("The body is not UTF-8.") from None
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_no_float)
    except ValueError:
        raise ParseError("The body is not valid JSON.") from None
    _check_text(value)
    return value


def _check_depth(text: str) -> None:
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted, escaped = (character != '"' or escaped), (character == "\\" and not escaped)
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            if depth > DEEPEST:
                raise ParseError(f"The body nests deeper than {DEEPEST} levels.")
        elif character in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ParseError("The body names a field twice.")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ParseError(f"{name} is not a JSON value.")


def _no_float(text: str) -> NoReturn:
    raise ParseError("Numbers must be whole: amounts are in minor units.")


def _check_text(value: Any) -> None:
    match value:
        case str():
            _check_string(value)
        case dict():
            for key, inner in value.items():
                _check_string(key)
                _check_text(inner)
        case list():
            for inner in value:
                _check_text(inner)


def _check_string(text: str) -> None:
    if "\x00" in text:
        raise ParseError("Text may not hold a NUL character.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ParseError("Text may not hold half a character (a lone surrogate).")
