"""The sandbox's state: one SQLite file, one transaction per request, on disk before anybody hears of it."""

import contextlib
import fcntl
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from sandbox.stripe.exchange import Json

VERSION = 1
ACCOUNT = "acct_sandbox"  # whose key it is; `Stripe-Account` names another
SCHEMA = f"""
BEGIN;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE object (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    created INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX object_of_kind ON object (account, kind, seq);
CREATE INDEX object_of_customer ON object (account, kind, json_extract(body, '$.customer'), seq);
CREATE INDEX object_of_intent ON object (account, kind, json_extract(body, '$.payment_intent'), seq);
CREATE INDEX object_of_charge ON object (account, kind, json_extract(body, '$.charge'), seq);
CREATE TABLE idempotency_key (
    account TEXT NOT NULL, key TEXT NOT NULL, endpoint TEXT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER NOT NULL,
    body BLOB NOT NULL, request_id TEXT NOT NULL, created INTEGER NOT NULL, PRIMARY KEY (account, key));
CREATE INDEX idempotency_key_of_age ON idempotency_key (created);
CREATE TABLE movement (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL,
    charge TEXT NOT NULL, payment_intent TEXT, customer TEXT, amount INTEGER NOT NULL, currency TEXT NOT NULL,
    metadata TEXT NOT NULL, request_id TEXT, idempotency_key TEXT);
CREATE TRIGGER movement_kept BEFORE UPDATE ON movement BEGIN SELECT RAISE(ABORT, 'the money log is append-only'); END;
CREATE TRIGGER movement_stays BEFORE DELETE ON movement BEGIN SELECT RAISE(ABORT, 'the money log is append-only'); END;
CREATE TABLE pending_change (
    object TEXT PRIMARY KEY, account TEXT NOT NULL, status TEXT, due INTEGER, request_id TEXT, idempotency_key TEXT);
CREATE TABLE delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waiting',
    attempts INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL, status INTEGER, error TEXT);
CREATE INDEX delivery_waiting ON delivery (due) WHERE state = 'waiting';
CREATE INDEX delivery_of_event ON delivery (event);
PRAGMA user_version = {VERSION};
COMMIT;
"""
LATER = (
    "CREATE INDEX IF NOT EXISTS object_of_every_account ON object (kind, seq)"  # a state that is older gets it as it is opened
)


Ring = Callable[[], None] | None  # wakes the sender of webhooks; None: there is no address to send to


class Unusable(Exception):
    """The folder's state cannot be opened."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The request that something happened for; both None when it happened by itself."""

    request_id: str | None = None
    idempotency_key: str | None = None


NOBODY = Cause()


def new_id(prefix: str) -> str:
    """Return an id in Stripe's shape: pi_3f0c…"""
    return f"{prefix}_{secrets.token_hex(12)}"


class Transaction:
    """What the domain may do with the state: all of it is committed together, or none."""

    def __init__(self, conn: sqlite3.Connection, *, account: str, now: int, cause: Cause, ring: Ring) -> None:
        self.conn = conn
        self.account = account
        self.now = now
        self.cause = cause
        self.ring = ring

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        """Run one statement with bound values."""
        return self.conn.execute(statement, values)

    def find(self, kind: str, object_id: str) -> Json | None:
        """Return an object of this account, None when there is none."""
        found = self.execute("SELECT body FROM object WHERE id = ? AND account = ? AND kind = ?", (object_id, self.account, kind))
        row = found.fetchone()
        return json.loads(row["body"]) if row else None

    def put(self, body: Json) -> Json:
        """Write an object as it is now and return it."""
        self.execute(
            "INSERT INTO object (account, id, kind, created, body) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            (self.account, body["id"], body["object"], body["created"], json.dumps(body)),
        )
        return body

    def of(self, account: str) -> "Transaction":
        """Return the same transaction, acting by itself for another account."""
        return Transaction(self.conn, account=account, now=self.now, cause=NOBODY, ring=self.ring)

    def mark(self) -> None:
        """Set the point that `undo` goes back to."""
        self.execute("SAVEPOINT effect")

    def undo(self) -> None:
        """Take back what was written since `mark`; the transaction goes on."""
        self.execute("ROLLBACK TO effect")


class Store:
    """The file and its one connection; a lock lets one transaction in at a time. `now` is Unix seconds, settable forward."""

    def __init__(self, folder: Path, *, ring: Ring = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._held = hold(folder / "lock")
        self._lock = threading.RLock()
        self._conn = connect(folder / "stripe.sqlite3")
        self._ring = ring
        row = self._conn.execute("SELECT value FROM setting WHERE name = 'clock_offset'").fetchone()
        self._offset = int(row["value"]) if row else 0

    def now(self) -> int:
        """Return the sandbox's time: the real one plus what it was advanced."""
        return int(time.time()) + self._offset

    def ahead(self) -> int:
        """Return how far it was advanced, in seconds."""
        return self._offset

    def advance(self, *, seconds: int) -> int:
        """Move the clock forward for good and return the new time."""
        with self.transaction() as tx:
            offset = str(self._offset + seconds)
            tx.execute("INSERT OR REPLACE INTO setting (name, value) VALUES ('clock_offset', ?)", (offset,))
        self._offset += seconds
        return self.now()

    @contextlib.contextmanager
    def transaction(self, *, account: str = ACCOUNT, cause: Cause = NOBODY) -> Iterator[Transaction]:
        """Open a transaction; it is on disk when the block ends, and undone when the block raises."""
        with self._lock:
            self._conn.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(self._conn, account=account, now=self.now(), cause=cause, ring=self._ring)
                self._conn.execute("COMMIT")
            except BaseException:
                if self._conn.in_transaction:
                    self._conn.execute("ROLLBACK")
                raise


def hold(path: Path) -> TextIO:
    """Return the folder's lock file, locked: claims on keys live in memory, so a folder has one process."""
    held = open(path, "w")  # noqa: SIM115 - held as long as the store is open
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        held.close()
        raise Unusable(f"Another Stripe sandbox is using {path.parent}.") from error
    return held


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, making its tables when it is new; every commit is flushed to the disk."""
    conn = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    conn.row_factory = sqlite3.Row
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
        conn.execute(f"PRAGMA {pragma}")
    (version,) = conn.execute("PRAGMA user_version").fetchone()
    if version == 0:
        conn.executescript(SCHEMA)
    elif version != VERSION:
        raise Unusable(f"{path} is of version {version}; this Stripe sandbox reads version {VERSION}. Remove it to start anew.")
    conn.execute(LATER)
    return conn
