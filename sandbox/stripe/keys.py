"""Idempotency keys: claimed in memory while a request runs, saved with its answer in the transaction of its effect.

A crash forgets claims, and by then their requests have had no effect: effect and saved answer are one commit.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator

from sandbox.stripe.exchange import Answer, Call, Json
from sandbox.stripe.refusals import invalid, key_in_use, key_mismatch
from sandbox.stripe.store import Transaction

KEPT_FOR = 24 * 60 * 60  # seconds; Stripe may prune a key once it is as old, so the sandbox does at once
LONGEST = 255


class Claims:
    """The keys whose requests are running now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[tuple[str, str]] = set()

    @contextlib.contextmanager
    def hold(self, account: str, key: str) -> Iterator[None]:
        """Keep a key for one request; a second one meanwhile is refused."""
        name = (account, key)
        with self._lock:
            if name in self._held:
                raise key_in_use(key)
            self._held.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(name)


def of(call: Call) -> str | None:
    """Return the key of a call; only POST has one."""
    key = call.headers.get("idempotency-key") if call.method == "POST" else None
    if key and len(key) > LONGEST:
        raise invalid(f"Idempotency keys can have up to {LONGEST} characters, not {len(key)}.")
    return key or None


def fingerprint(given: Json) -> str:
    """Return a hash of decoded parameters, whatever their order."""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def replay(tx: Transaction, *, call: Call, key: str, given: Json) -> Answer | None:
    """Return the saved answer of a key, None for a new one; another endpoint or other parameters are refused."""
    prune(tx)
    found = tx.execute("SELECT * FROM idempotency_key WHERE account = ? AND key = ?", (tx.account, key))
    saved = found.fetchone()
    if saved is None:
        return None
    hint = f"Try using a key other than '{key}' if you meant to execute a different request."
    if saved["endpoint"] != call.path:
        first = f"the same endpoint they were first used for ('{call.path}' vs '{saved['endpoint']}')"
        raise key_mismatch(f"Keys for idempotent requests can only be used for {first}. {hint}")
    if saved["fingerprint"] != fingerprint(given):
        raise key_mismatch(
            f"Keys for idempotent requests can only be used with the same parameters they were first used with. {hint}"
        )
    headers = {"Idempotent-Replayed": "true", "Original-Request": saved["request_id"]}
    if saved["status"] >= 500:
        headers["Stripe-Should-Retry"] = "false"  # the saved 500 never changes
    return Answer(status=saved["status"], body=saved["body"], headers=headers)


def save(tx: Transaction, *, call: Call, key: str, given: Json, answer: Answer) -> None:
    """Keep an answer for repeats of its request."""
    tx.execute(
        "INSERT INTO idempotency_key (account, key, endpoint, fingerprint, status, body, request_id, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, key, call.path, fingerprint(given), answer.status, answer.body, call.request_id, tx.now),
    )


def prune(tx: Transaction) -> None:
    """Forget keys that are 24 hours old: after that the same key is a new request."""
    tx.execute("DELETE FROM idempotency_key WHERE created <= ?", (tx.now - KEPT_FOR,))
