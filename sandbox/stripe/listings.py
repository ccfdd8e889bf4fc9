"""What the control API lists of all accounts: newest first, a page at a time, for somebody who looks."""

import json

from sandbox.stripe import settlements
from sandbox.stripe.exchange import Json
from sandbox.stripe.store import Transaction

KINDS = ("customer", "payment_intent", "refund", "invoice", "credit_note", "payment_method", "charge", "dispute", "event")
OBJECTS = """
SELECT seq, account, kind, body FROM object WHERE kind = :kind AND seq < :before ORDER BY seq DESC LIMIT :most
"""  # one kind at a time, by its index: most of what there is are events
OBJECT = "SELECT seq, account, kind, body FROM object WHERE id = ?"
MOVEMENTS = "SELECT * FROM movement WHERE seq < :before ORDER BY seq DESC LIMIT :most"
SUMS = """
SELECT currency, count(*) AS movements, sum(amount) AS balance,
    sum(CASE kind WHEN 'charge' THEN amount ELSE 0 END) AS charged,
    sum(CASE kind WHEN 'refund' THEN amount ELSE 0 END) AS refunded,
    sum(CASE WHEN kind NOT IN ('charge', 'refund') THEN amount ELSE 0 END) AS returned
FROM movement GROUP BY currency ORDER BY currency
"""
DELIVERIES = """
SELECT delivery.*, json_extract(object.body, '$.type') AS type, json_extract(object.body, '$.created') AS created,
    json_extract(object.body, '$.data.object.id') AS object
FROM delivery JOIN object ON object.id = delivery.event WHERE delivery.id < :before ORDER BY delivery.id DESC LIMIT :most
"""
UNDER_WAY = """
SELECT object.seq, object.account, object.kind, object.body, pending_change.due, pending_change.status AS becomes
FROM pending_change CROSS JOIN object ON object.id = pending_change.object
ORDER BY pending_change.due IS NULL, pending_change.due, seq
"""


def objects(tx: Transaction, *, kinds: list[str], before: int, most: int) -> Json:
    """Return objects of some kinds that are older than a number, and the number that the next page begins before."""
    rows = [
        row for kind in dict.fromkeys(kinds) for row in tx.execute(OBJECTS, {"kind": kind, "before": before, "most": most + 1})
    ]
    newest = sorted(rows, key=lambda row: int(row["seq"]), reverse=True)[: most + 1]
    return _page([_object(row) for row in newest], name="objects", most=most, key="seq")


def found(tx: Transaction, object_id: str) -> Json:
    """Return the object of an id, in a list that is empty when there is none."""
    return {"objects": [_object(row) for row in tx.execute(OBJECT, (object_id,))], "next": None}


def movements(tx: Transaction, *, before: int, most: int) -> Json:
    """Return movements of money that are older than a number."""
    rows = tx.execute(MOVEMENTS, {"before": before, "most": most + 1}).fetchall()
    listed = [dict(row) | {"metadata": json.loads(row["metadata"])} for row in rows]
    return _page(listed, name="movements", most=most, key="seq")


def sums(tx: Transaction) -> Json:
    """Return what moved per currency, in minor units: `refunded` is negative, `returned` came back from refunds that ended."""
    return {"sums": [dict(row) for row in tx.execute(SUMS)]}


def deliveries(tx: Transaction, *, before: int, most: int) -> Json:
    """Return deliveries of events that are older than a number, with what each is about."""
    rows = tx.execute(DELIVERIES, {"before": before, "most": most + 1}).fetchall()
    return _page([dict(row) for row in rows], name="deliveries", most=most, key="id")


def under_way(tx: Transaction) -> Json:
    """Return what has not ended yet, what it becomes by itself and when, if it does, and what a control call can make of it."""
    return {"under_way": [_object(row) | {"due": row["due"], "becomes": row["becomes"]} for row in tx.execute(UNDER_WAY)]}


def _object(row: Json) -> Json:
    body = json.loads(row["body"])
    possible = settlements.POSSIBLE.get((row["kind"], body.get("status", "")), ())
    return {"seq": row["seq"], "account": row["account"], "kind": row["kind"], "possible": possible, "body": body}


def _page(rows: list[Json], *, name: str, most: int, key: str) -> Json:
    return {name: rows[:most], "next": rows[most - 1][key] if len(rows) > most else None}
