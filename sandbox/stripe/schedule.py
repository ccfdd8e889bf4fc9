"""Changes that come later, by the clock or by a control call: a debit that clears, a refund that ends."""

from dataclasses import dataclass

from sandbox.stripe.store import NOBODY, Cause, Transaction


@dataclass(frozen=True, kw_only=True)
class Change:
    """What will become of an object; it moves money in the name of the request that set it going."""

    object_id: str
    account: str
    status: str


def later(tx: Transaction, object_id: str, *, status: str | None, seconds: int | None) -> None:
    """Remember a change for `seconds` from now; None waits for a control call."""
    due = None if seconds is None else tx.now + seconds
    tx.execute(
        "INSERT OR REPLACE INTO pending_change (object, account, status, due, request_id, idempotency_key)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (object_id, tx.account, status, due, tx.cause.request_id, tx.cause.idempotency_key),
    )


def next_due(tx: Transaction) -> Change | None:
    """Return the oldest change of any account whose time has come."""
    found = tx.execute("SELECT object, account, status FROM pending_change WHERE due <= ? ORDER BY due, rowid LIMIT 1", (tx.now,))
    row = found.fetchone()
    return Change(object_id=row["object"], account=row["account"], status=row["status"]) if row else None


def take(tx: Transaction, object_id: str) -> Cause:
    """Remove an object's pending change and return the request that set it going."""
    found = tx.execute("DELETE FROM pending_change WHERE object = ? RETURNING request_id, idempotency_key", (object_id,))
    row = found.fetchone()
    return Cause(request_id=row["request_id"], idempotency_key=row["idempotency_key"]) if row else NOBODY
