"""What travels between the HTTP layer and the API: a call and its answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One HTTP request; header names are lower case. `hang_up` resets the connection under it."""

    method: str
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]
    request_id: str
    hang_up: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One HTTP response, before any fault has touched it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(status: int, body: Json, *, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with a JSON body."""
    return Answer(status=status, body=json.dumps(body).encode(), headers=dict(headers or {}))


def bearer(call: Call) -> str | None:
    """Return the secret of an `Authorization: Bearer` header, None without one."""
    scheme, _, secret = call.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" and secret.strip() else None
