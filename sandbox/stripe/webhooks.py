"""Webhooks: signed deliveries of events, from a thread, at least once, with back-off, and badly on request."""

import dataclasses
import hmac
import http.client
import logging
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.stripe.exchange import Json
from sandbox.stripe.store import Store, Transaction

log = logging.getLogger(__name__)
TIMEOUT = 10  # seconds for one delivery
IDLE = 0.2  # seconds of real time between looks at the clock
BACK_OFF = (1, 2, 5, 15, 60, 300, 1800, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)  # seconds of the sandbox's clock; three days
NEXT = """
SELECT delivery.id, delivery.event, delivery.attempts, object.body FROM delivery JOIN object ON object.id = delivery.event
WHERE delivery.state = 'waiting' AND delivery.due + CASE delivery.attempts WHEN 0 THEN :delay ELSE 0 END <= :now
"""


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How deliveries go: held back, late (seconds), several times, newest first, or the next `drop` not at all."""

    paused: bool = False
    delay: int = 0
    copies: int = 1
    newest_first: bool = False
    drop: int = 0


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where events go, and the secrets that sign them: more than one while a secret is being replaced."""

    url: str
    secrets: Sequence[str]


def sign(payload: bytes, *, secrets: Sequence[str], at: int) -> str:
    """Return a `Stripe-Signature` header; `at` is real Unix time, whatever the sandbox's clock says."""
    signed = f"{at}.".encode() + payload
    return ",".join([f"t={at}", *(f"v1={hmac.new(secret.encode(), signed, 'sha256').hexdigest()}" for secret in secrets)])


def post(address: Address, payload: bytes, *, signature: str = "") -> int:
    """Deliver one event, signed now unless it is signed, and return the HTTP status; no redirect is followed, no proxy asked."""
    parts = urlsplit(address.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "Stripe/1.0 (sandbox)",
        "Stripe-Signature": signature or sign(payload, secrets=address.secrets, at=int(time.time())),
    }
    try:
        connection.request(
            "POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body=payload, headers=headers
        )
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


class Sender(threading.Thread):
    """Delivers what is due, one after the other."""

    def __init__(self, store: Store, address: Address, *, bell: threading.Event) -> None:
        super().__init__(name="webhooks", daemon=True)
        self._store = store
        self.address = address
        self._bell = bell
        self._stopped = False
        self._lock = threading.Lock()
        self._manners = Manners()

    def run(self) -> None:
        """Deliver until stopped; the bell wakes it, and so does time."""
        while not self._stopped:
            self._bell.wait(IDLE)
            self._bell.clear()
            try:
                while not self._stopped and self._deliver_next():
                    pass
            except sqlite3.Error:  # a full disk passes; what is promised stays promised
                log.exception("webhooks wait: the state cannot be written")

    def stop(self) -> None:
        """End after the delivery under way."""
        self._stopped = True
        self._bell.set()
        self.join()

    def manners(self) -> Manners:
        """Return how deliveries go now."""
        with self._lock:
            return self._manners

    def behave(self, **changes: object) -> Manners:
        """Change how deliveries go; without arguments, well again."""
        with self._lock:
            self._manners = dataclasses.replace(self._manners, **changes) if changes else Manners()  # type: ignore[arg-type]
            return self._manners

    def _deliver_next(self) -> bool:
        manners = self.manners()
        if manners.paused:
            return False
        order = "DESC" if manners.newest_first else "ASC"
        with self._store.transaction() as tx:
            row = tx.execute(f"{NEXT} ORDER BY delivery.id {order} LIMIT 1", {"delay": manners.delay, "now": tx.now}).fetchone()
        if row is None:
            return False
        if manners.drop:
            self.behave(drop=manners.drop - 1)
            self._record(row["id"], state="dropped", attempts=row["attempts"])
            return True
        for _ in range(manners.copies):
            self._deliver(delivery=row["id"], attempts=row["attempts"] + 1, payload=row["body"].encode())
        return True

    def _deliver(self, *, delivery: int, attempts: int, payload: bytes) -> None:
        try:
            status, error = post(self.address, payload), None
        except (OSError, http.client.HTTPException) as failure:
            status, error = None, f"{type(failure).__name__}: {failure}"
        if status is not None and 200 <= status < 300:
            return self._record(delivery, state="delivered", attempts=attempts, status=status)
        log.warning("webhook not delivered: attempt %s, %s", attempts, error or status)
        given_up = attempts > len(BACK_OFF)
        wait = 0 if given_up else BACK_OFF[attempts - 1]
        self._record(
            delivery, state="given_up" if given_up else "waiting", attempts=attempts, status=status, error=error, wait=wait
        )

    def _record(
        self, delivery: int, *, state: str, attempts: int, status: int | None = None, error: str | None = None, wait: int = 0
    ) -> None:
        with self._store.transaction() as tx:
            values = (state, attempts, status, error, tx.now + wait, delivery)
            tx.execute("UPDATE delivery SET state = ?, attempts = ?, status = ?, error = ?, due = ? WHERE id = ?", values)


def deliveries(tx: Transaction) -> list[Json]:
    """Return every delivery, oldest first, with its event's type."""
    rows = tx.execute(
        "SELECT delivery.*, json_extract(object.body, '$.type') AS type FROM delivery JOIN object ON object.id = delivery.event"
        " ORDER BY delivery.id"
    )
    return [dict(row) for row in rows]
