"""Ends that come later: which change of status is possible, and the thread that lets the clock make it."""

import logging
import sqlite3
import threading

from sandbox.stripe import attempts, keys, refunds, schedule
from sandbox.stripe.exchange import Json
from sandbox.stripe.store import Store, Transaction

log = logging.getLogger(__name__)
TICK = 0.2  # seconds of real time between looks at the clock
POSSIBLE = {
    ("payment_intent", "processing"): ("succeeded", "failed"),
    ("payment_intent", "requires_action"): ("succeeded", "failed"),
    ("refund", "pending"): ("succeeded", "failed", "canceled", "requires_action"),
    ("refund", "requires_action"): ("succeeded", "failed", "canceled"),
    ("refund", "succeeded"): ("failed",),  # a bank may send it back a month later
}


class Impossible(Exception):
    """The object cannot take this status."""


def settle(tx: Transaction, *, object_id: str, status: str) -> Json:
    """Give an intent or a refund of any account its next status, as a bank, a customer or the Dashboard would."""
    row = tx.execute("SELECT account, kind FROM object WHERE id = ?", (object_id,)).fetchone()
    body = tx.of(row["account"]).find(row["kind"], object_id) if row else None
    if row is None or body is None:
        raise Impossible(f"There is no object {object_id}.")
    if status not in POSSIBLE.get((row["kind"], body.get("status", "")), ()):
        raise Impossible(f"{object_id} is {body.get('status', 'without a status')}: it cannot become {status}.")
    change = attempts.settle if row["kind"] == "payment_intent" else refunds.settle
    return change(tx.of(row["account"]), body, status=status)


def settle_due(store: Store) -> None:
    """Make every change whose time has come, each in its own transaction, and forget old keys."""
    while _settle_next(store):
        pass
    with store.transaction() as tx:
        keys.prune(tx)


def _settle_next(store: Store) -> bool:
    with store.transaction() as tx:
        change = schedule.next_due(tx)
        if change:
            settle(tx, object_id=change.object_id, status=change.status)
    return change is not None


class Ticker(threading.Thread):
    """Lets time pass for what is scheduled, and prunes keys."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="ticker", daemon=True)
        self._store = store
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look at the clock until stopped."""
        while not self._stopped.wait(TICK):
            try:
                settle_due(self._store)
            except sqlite3.Error:  # a full disk passes; what is scheduled stays scheduled
                log.exception("the clock waits: the state cannot be written")

    def stop(self) -> None:
        """End after the change under way."""
        self._stopped.set()
        self.join()
