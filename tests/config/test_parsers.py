"""Only plain, strict JSON comes in."""

import io
import json
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError

from config import parsers

REFUSED = {
    b"{": "not valid JSON",
    b"": "not valid JSON",
    b"\xff\xfe": "not UTF-8",
    b'{"a": 1, "a": 2}': "names a field twice",
    b'{"a": {"b": 1, "b": 1}}': "names a field twice",
    b'{"a": NaN}': "not a JSON value",
    b'{"a": -Infinity}': "not a JSON value",
    b'{"a": 1.5}': "whole",
    b'{"a": 1e5}': "whole",
    b'{"a": "x\\u0000y"}': "NUL",
    b'{"x\\u0000y": 1}': "NUL",
    b'["\\ud800"]': "half a character",
    b'{"a": 1} {"b": 2}': "not valid JSON",
    b"[" * 33 + b"]" * 33: "deeper than 32",
    b"[" * 20_000: "deeper than 32",
    b'{"a":' * 40 + b"1" + b"}" * 40: "deeper than 32",
    b'{"a": ' + b"9" * 5000 + b"}": "not valid JSON",
}


def parse(body: bytes) -> Any:
    return parsers.StrictJSONParser().parse(io.BytesIO(body))


@pytest.mark.parametrize("body", list(REFUSED), ids=lambda body: repr(body[:20]))
def test_it_refuses(body: bytes) -> None:
    with pytest.raises(ParseError, match=REFUSED[body]):
        parse(body)


@pytest.mark.parametrize("value", [{"a": [1, "x", None, True]}, "ü€😀", [], {"text": "[[[[" * 100 + '"' + "\\"}, 2**62])
def test_it_reads(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def test_it_reads_up_to_the_limit_and_not_beyond(settings: Any) -> None:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert parse(b'"' + b"x" * (limit - 2) + b'"') == "x" * (limit - 2)
    with pytest.raises(RequestDataTooBig):
        parse(b'"' + b"x" * limit + b'"')
