"""Form parameters: decode Stripe's bracket notation and read them by a schema; what is not in the schema is refused."""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from sandbox.stripe import currencies
from sandbox.stripe.exchange import Json
from sandbox.stripe.refusals import invalid

NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
MOST_PAIRS = 1000
METADATA_KEYS, METADATA_KEY, METADATA_VALUE = 50, 40, 500  # Stripe's published limits

Reader = Callable[[str, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Field:
    """One parameter that a request may carry."""

    read: Reader
    required: bool = False
    default: Any = None


Schema = dict[str, Field]


def decode(text: str) -> Json:
    """Return nested dicts for `a[b]=1&c[]=2`; lists are dicts with the keys "0", "1", …"""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PAIRS)
    except ValueError as error:  # UnicodeDecodeError is one
        raise invalid(f"The parameters cannot be read: {error}.") from error
    decoded: Json = {}
    for name, value in pairs:
        _place(decoded, name, value)
    return decoded


def _place(decoded: Json, name: str, value: str) -> None:
    parts = NAME.fullmatch(name)
    if not parts:
        raise invalid(f"Invalid parameter name: {name}", param=name)
    path = [parts[1], *re.findall(r"\[([^\[\]]*)\]", parts[2])]
    inner = decoded
    for step in path[:-1]:
        inner = inner.setdefault(step or str(len(inner)), {})
        if not isinstance(inner, dict):
            raise invalid(f"Invalid parameter name: {name}", param=name)
    inner[path[-1] or str(len(inner))] = value


def read(schema: Schema, given: Json) -> Json:
    """Return every parameter of the schema with its value or default; unknown, missing and malformed ones raise."""
    if unknown := [name for name in given if name not in schema]:
        word = "parameter" if len(unknown) == 1 else "parameters"
        raise invalid(f"Received unknown {word}: {', '.join(unknown)}", code="parameter_unknown", param=unknown[0])
    return {name: _read_one(name, field, given.get(name)) for name, field in schema.items()}


def _read_one(name: str, field: Field, value: Any) -> Any:
    if value is None and field.required:
        raise invalid(f"Missing required param: {name}.", code="parameter_missing", param=name)
    if value == "":
        raise invalid(f"You passed an empty string for '{name}'.", code="parameter_invalid_empty", param=name)
    return copy(field.default) if value is None else field.read(name, value)


def text(name: str, value: Any) -> str:
    """Read a string of at most 5000 characters."""
    if not isinstance(value, str):
        raise invalid("Invalid string: a hash was given.", param=name)
    if len(value) > 5000:
        raise invalid(
            f"Invalid string: {name} must be at most 5000 characters.", code="parameter_invalid_string_length", param=name
        )
    return value


def integer(*, minimum: int, maximum: int = 99_999_999) -> Reader:
    """Return a reader of whole numbers between bounds; Stripe takes eight digits at most."""

    def read_integer(name: str, value: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise invalid(f"Invalid integer: {value}", code="parameter_invalid_integer", param=name)
        if int(value) < minimum:
            raise invalid(f"This value must be greater than or equal to {minimum}.", code="parameter_invalid_integer", param=name)
        if int(value) > maximum:
            raise invalid(f"This value must be no more than {maximum}.", code="parameter_invalid_integer", param=name)
        return int(value)

    return read_integer


def boolean(name: str, value: Any) -> bool:
    """Read true or false."""
    if value not in ("true", "false"):
        raise invalid(f"Invalid boolean: {value}", param=name)
    return bool(value == "true")


def choice(*allowed: str) -> Reader:
    """Return a reader that takes one of a few words."""

    def read_choice(name: str, value: Any) -> str:
        if value not in allowed:
            raise invalid(f"Invalid {name}: must be one of {', '.join(allowed)}", param=name)
        return str(value)

    return read_choice


def currency(name: str, value: Any) -> str:
    """Read a lower-case currency code that Stripe takes."""
    if value not in currencies.CODES:
        raise invalid(f"Invalid currency: {value}. It must be one of Stripe's, in lower case.", param=name)
    return str(value)


def words(name: str, value: Any) -> list[str]:
    """Read a list of strings."""
    if not isinstance(value, dict) or not all(key.isdecimal() for key in value):
        raise invalid("Invalid array", param=name)
    return [text(name, value[key]) for key in sorted(value, key=int)]


def metadata(name: str, value: Any) -> dict[str, str]:
    """Read metadata within Stripe's limits on number and length."""
    if not isinstance(value, dict) or len(value) > METADATA_KEYS:
        raise invalid(f"Metadata must be a hash of at most {METADATA_KEYS} keys.", param=name)
    for key, item in value.items():
        if len(key) > METADATA_KEY:
            raise invalid(f"Metadata keys can have up to {METADATA_KEY} characters, not {len(key)}.", param=name)
        if not isinstance(item, str) or len(item) > METADATA_VALUE:
            raise invalid(f"Metadata values are strings of up to {METADATA_VALUE} characters: {key} is not.", param=name)
    return {key: item for key, item in value.items() if item}


def nested(schema: Schema) -> Reader:
    """Return a reader of a hash with a schema of its own."""

    def read_nested(name: str, value: Any) -> Json:
        if not isinstance(value, dict):
            raise invalid(f"Invalid hash: {name}", param=name)
        return read(schema, value)

    return read_nested


def hashes(schema: Schema) -> Reader:
    """Return a reader of a list of hashes that share a schema."""

    def read_hashes(name: str, value: Any) -> list[Json]:
        if not isinstance(value, dict) or not all(key.isdecimal() for key in value):
            raise invalid("Invalid array", param=name)
        return [nested(schema)(f"{name}[{key}]", value[key]) for key in sorted(value, key=int)]

    return read_hashes


def instants(name: str, value: Any) -> Json:
    """Read a `created` filter: one Unix time, or bounds by gt, gte, lt, lte."""
    seconds = integer(minimum=0, maximum=10**11)
    if isinstance(value, dict):
        return {
            key: bound
            for key, bound in nested({k: Field(read=seconds) for k in ("gt", "gte", "lt", "lte")})(name, value).items()
            if bound is not None
        }
    return {"gte": seconds(name, value), "lte": seconds(name, value)}
