"""A trap in every test process and every worker that tests fork: whoever contacts anything in a transaction is caught.

Connections of psycopg go out through libpq, which this does not see; everything else of Python's goes through here:
whatever opens a connection, looks a name up, or sends on a connection that is open already.
"""

import os
import socket
import ssl
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

CONTACTS = frozenset(
    {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto", "socket.sendmsg"}
)
BUSY = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)
# The pooled connections that somebody has in hand, and in which thread. Django's own, for pages, it keeps itself.
_held: dict[int, tuple[Any, int]] = {}
_installed = False


class ContactedInTransaction(BaseException):
    """Something but PostgreSQL was contacted while this thread had a transaction open. Not an error that code may handle."""


def install(folder: str) -> None:
    """Watch this process; what is caught is also kept in the folder, for a process that nobody asks."""
    global _installed
    if _installed:
        return
    _installed = True
    os.environ["TRAP_FOLDER"] = folder
    take, give = ConnectionPool.getconn, ConnectionPool.putconn

    def getconn(self: Any, timeout: float | None = None) -> Any:
        conn = take(self, timeout)
        _held[id(conn)] = conn, threading.get_ident()
        return conn

    def putconn(self: Any, conn: Any) -> None:
        _held.pop(id(conn), None)
        give(self, conn)

    ConnectionPool.getconn, ConnectionPool.putconn = getconn, putconn
    for kind, names in ((socket.socket, ("send", "sendall")), (ssl.SSLSocket, ("send",))):
        for name in names:
            setattr(kind, name, _watched(getattr(kind, name)))
    sys.addaudithook(lambda event, arguments: _catch(event, arguments) if event in CONTACTS else None)


def _watched(send: Any) -> Any:
    def watched(self: socket.socket, *arguments: Any) -> Any:
        if _open():
            _catch("socket.send", (self, _peer(self)))
        return send(self, *arguments)

    return watched


def _catch(event: str, arguments: Any) -> None:
    address = arguments[1] if len(arguments) > 1 and isinstance(arguments[0], socket.socket) else arguments
    if address == "":
        return  # the other end of a pair of this very process
    if conn := _open():
        told = f"{event} {address!r} while {conn!r} was in a transaction\n{''.join(traceback.format_stack(limit=12))}"
        with (Path(os.environ["TRAP_FOLDER"]) / "contacts").open("a") as file:
            file.write(told + "\n")
        raise ContactedInTransaction(told)


def _open() -> "psycopg.Connection[Any] | None":
    """Return a connection of this thread that is in a transaction; in pipeline mode it is all the time."""
    me = threading.get_ident()
    mine = [conn for conn, thread in list(_held.values()) if thread == me]
    return next((conn for conn in [*mine, *_of_pages()] if conn.pgconn.transaction_status in BUSY), None)


def _of_pages() -> "list[psycopg.Connection[Any]]":
    """Return what Django has opened in this thread; a process that only forks others has no Django."""
    django = sys.modules.get("django.db")
    opened = django.connections.all(initialized_only=True) if django else []
    return [wrapper.connection for wrapper in opened if wrapper.connection is not None]


def _peer(connection: socket.socket) -> Any:
    try:
        return connection.getpeername()
    except OSError:
        return None


def caught(folder: str) -> str:
    """Return what was caught since it was asked last, in this process and in those that it started."""
    kept = Path(folder) / "contacts"
    if not kept.exists():
        return ""
    told = kept.read_text()
    kept.unlink()
    return told
