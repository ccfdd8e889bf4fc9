"""The money log: every movement of money, append-only, to compare an application's books against."""

import json

from sandbox.stripe.exchange import Json
from sandbox.stripe.store import Cause, Transaction


def record(tx: Transaction, *, kind: str, source: Json, charge: Json, amount: int, cause: Cause) -> None:
    """Write down one movement: `amount` in minor units, negative when it leaves us; `source` is the charge or refund."""
    tx.execute(
        "INSERT INTO movement (at, account, kind, object, charge, payment_intent, customer, amount, currency, metadata,"
        " request_id, idempotency_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tx.now, tx.account, kind, source["id"], charge["id"], charge["payment_intent"], charge["customer"], amount,
            charge["currency"], json.dumps(source["metadata"]), cause.request_id, cause.idempotency_key,
        ),
    )  # fmt: skip


def movements(tx: Transaction, *, after: int = 0) -> list[Json]:
    """Return the movements of every account after a sequence number, oldest first."""
    rows = tx.execute("SELECT * FROM movement WHERE seq > ? ORDER BY seq", (after,))
    return [dict(row) | {"metadata": json.loads(row["metadata"])} for row in rows]


def balances(tx: Transaction) -> dict[str, int]:
    """Return this account's money per currency, in minor units."""
    rows = tx.execute("SELECT currency, sum(amount) AS amount FROM movement WHERE account = ? GROUP BY currency", (tx.account,))
    return {row["currency"]: row["amount"] for row in rows}
