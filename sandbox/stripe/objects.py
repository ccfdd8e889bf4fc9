"""Finding objects: one by id, a page of a list, and expanded references inside an answer."""

import json
from typing import Any

from sandbox.stripe.exchange import Json
from sandbox.stripe.params import Field, Schema, instants, integer, text, words
from sandbox.stripe.refusals import invalid, missing
from sandbox.stripe.store import Transaction

LIST: Schema = {
    "limit": Field(read=integer(minimum=1, maximum=100), default=10),
    "starting_after": Field(read=text),
    "ending_before": Field(read=text),
    "created": Field(read=instants, default={}),
}
EXPAND: Schema = {"expand": Field(read=words, default=[])}
CONDITIONS = {
    "customer": "json_extract(body, '$.customer') = :customer",
    "payment_intent": "json_extract(body, '$.payment_intent') = :payment_intent",
    "charge": "json_extract(body, '$.charge') = :charge",
    "invoice": "json_extract(body, '$.invoice') = :invoice",
    "status": "json_extract(body, '$.status') = :status",
    "email": "json_extract(body, '$.email') = :email",
    "type": "json_extract(body, '$.type') GLOB :type",  # of a payment method, or of events: charge.* is a group of them
    "types": "json_extract(body, '$.type') IN (SELECT value FROM json_each(:types))",
    "undelivered": "EXISTS (SELECT 1 FROM delivery WHERE event = object.id AND state <> 'delivered') = :undelivered",
    "since": "created >= :since",
    "gt": "created > :gt",
    "gte": "created >= :gte",
    "lt": "created < :lt",
    "lte": "created <= :lte",
}
REFERENCES = {
    "customer": "customer",
    "payment_method": "payment_method",
    "latest_charge": "charge",
    "payment_intent": "payment_intent",
    "charge": "charge",
    "invoice": "invoice",
}
NAMES = {"payment_method": "PaymentMethod"}  # as Stripe's messages call them; the others go by their kind
DEEPEST = 4


def fetch(tx: Transaction, kind: str, object_id: str, *, param: str = "id", in_path: bool = False) -> Json:
    """Return an object of this account or raise Stripe's `resource_missing`."""
    found = tx.find(kind, object_id)
    if found is None:
        raise missing(NAMES.get(kind, kind), object_id, param=param, in_path=in_path)
    return found


def page(tx: Transaction, kind: str, params: Json, *, url: str, **filters: Any) -> Json:
    """Return one page of a list, newest first; filters that are None do not filter."""
    wanted = {name: value for name, value in (filters | params["created"]).items() if value is not None}
    backwards = params["ending_before"] is not None
    conditions = ["account = :account", "kind = :kind", *(CONDITIONS[name] for name in wanted)]
    values = wanted | {"account": tx.account, "kind": kind, "most": params["limit"] + 1}
    for name, condition in (("starting_after", "seq < :starting_after"), ("ending_before", "seq > :ending_before")):
        if params[name] is not None:
            conditions.append(condition)
            values[name] = _position(tx, kind, params[name], param=name)
    order = "ASC" if backwards else "DESC"
    where = " AND ".join(conditions)  # our own words only; values are bound
    rows = tx.execute(f"SELECT body FROM object WHERE {where} ORDER BY seq {order} LIMIT :most", values)  # noqa: S608
    found = [json.loads(row["body"]) for row in rows]
    data = found[: params["limit"]]
    return {"object": "list", "data": data[::-1] if backwards else data, "has_more": len(found) > len(data), "url": url}


def every(tx: Transaction, kind: str, **filters: Any) -> list[Json]:
    """Return all objects of a kind that the filters leave, oldest first."""
    where = " AND ".join(["account = :account", "kind = :kind", *(CONDITIONS[name] for name in filters)])  # our own words only
    values = filters | {"account": tx.account, "kind": kind}
    rows = tx.execute(f"SELECT body FROM object WHERE {where} ORDER BY seq", values)  # noqa: S608
    return [json.loads(row["body"]) for row in rows]


def _position(tx: Transaction, kind: str, object_id: str, *, param: str) -> int:
    row = tx.execute("SELECT seq FROM object WHERE id = ? AND account = ? AND kind = ?", (object_id, tx.account, kind)).fetchone()
    if row is None:
        raise missing(NAMES.get(kind, kind), object_id, param=param)
    return int(row["seq"])


def expand(tx: Transaction, body: Json, paths: list[str]) -> Json:
    """Replace the ids at dotted paths by the objects they name, in place; `data.x` reaches into a list."""
    for path in paths:
        steps = path.split(".")
        if len(steps) > DEEPEST:
            raise invalid(f"You cannot expand more than {DEEPEST} levels of a property ({path}).", param="expand")
        _expand(tx, body, steps, path=path)
    return body


def _expand(tx: Transaction, body: Json, steps: list[str], *, path: str) -> None:
    first, rest = steps[0], steps[1:]
    if first == "data" and rest and body.get("object") == "list":
        for item in body["data"]:
            _expand(tx, item, rest, path=path)
        return
    if first not in REFERENCES or first not in body:
        raise invalid(f"This property cannot be expanded ({path}).", param="expand")
    if isinstance(body[first], str):
        body[first] = fetch(tx, REFERENCES[first], body[first], param="expand")
    if rest and body[first]:
        _expand(tx, body[first], rest, path=path)
