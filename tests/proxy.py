"""A proxy of ours before PostgreSQL that reads the protocol and cuts a connection before or after the n-th COMMIT of a kind.

What commits is a COMMIT, or a synchronisation outside a transaction: psycopg's pipelines and single statements are
implicit transactions. `about` names a part of a statement that the transaction must have run, so a test says which one.
"""

import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

When = Literal["before", "after", "silent before", "silent after"]
MOST = 65536
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


@dataclass
class Cut:
    """What happens at the n-th COMMIT of a transaction that ran a statement which contains `about`.

    `before`: the server never gets it, both sides are cut off. `after`: it is committed, then both are cut off and nobody is
    told. `silent`: the same, but the worker's side stays open and never hears anything again, until `let_go`.
    """

    when: When
    about: str
    number: int = 1
    struck: threading.Event = field(default_factory=threading.Event)

    def due(self, statements: list[str]) -> bool:
        """Count one commit and say whether it is the one."""
        if self.struck.is_set() or not any(self.about in text for text in statements):
            return False
        self.number -= 1
        if self.number == 0:
            self.struck.set()
        return self.number == 0


class Proxy:
    """Forwards connections on a port of this machine to a PostgreSQL behind a socket file or a port."""

    def __init__(self, upstream: str) -> None:
        self._upstream = conninfo_to_dict(upstream)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._links: list[_Link] = []
        self.cut: Cut | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Return the address of the database through the proxy."""
        port = self._listener.getsockname()[1]
        here = {"host": "127.0.0.1", "port": str(port), "sslmode": "disable", "gssencmode": "disable"}
        return make_conninfo("", **{**self._upstream, **here})

    def arm(self, when: When, *, about: str, number: int = 1) -> Cut:
        """Prepare for one commit from now on."""
        self.cut = Cut(when=when, about=about, number=number)
        return self.cut

    def let_go(self) -> None:
        """Cut off every connection that was left silent."""
        for link in self._links:
            if link.silent:
                link.close()

    def close(self) -> None:
        """Take no more connections, and cut off those that are there."""
        self._listener.close()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._links.append(_Link(self, client, self._connect()))

    def _connect(self) -> socket.socket:
        host, port = str(self._upstream.get("host", "/var/run/postgresql")), int(self._upstream.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server


class _Link:
    """One connection: a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._named: dict[str, str] = {}  # prepared statements
        self._portals: dict[str, str] = {}
        self._statements: list[str] = []  # of the transaction, or of the pipeline if there is none
        self._in_transaction = False
        self._syncs: deque[bool] = deque([False])  # answers of readiness to come; True: the one that ends it all
        self.silent = False
        self._muted = False
        for direction in (self._forward, self._answer):
            threading.Thread(target=direction, daemon=True).start()

    def close(self) -> None:
        """End both sides."""
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    # -- from the client -----------------------------------------------------------------------

    def _forward(self) -> None:
        with suppress(OSError, EOFError):
            self._start()
            while True:
                kind, body = _message(self._client)
                if not self._pass(kind, body):
                    return
        if not self.silent:
            self.close()

    def _start(self) -> None:
        """Forward the beginning, which has no type byte; encryption is asked for by nobody here."""
        head = _exactly(self._client, 4)
        self._server.sendall(head + _exactly(self._client, int.from_bytes(head) - 4))

    def _pass(self, kind: bytes, body: bytes) -> bool:
        """Forward one message unless it is cut off there; return whether there are more."""
        when = self._seen(kind, body)
        if when in ("before", "silent before"):
            return self._cut_before(silent=when.startswith("silent"))
        if when:
            self._muted, self.silent = True, when.startswith("silent")
        if kind in (b"S", b"Q", b"F"):
            self._syncs.append(self._muted)
        self._server.sendall(_framed(kind, body))
        return True

    def _cut_before(self, *, silent: bool) -> bool:
        """Cut the connection, or leave it open and say nothing; either way nothing more goes to the server."""
        self._muted = self.silent = silent
        if not silent:
            self.close()
        return False

    def _seen(self, kind: bytes, body: bytes) -> When | None:
        """Keep track of what a message means and return what is to be done if it commits."""
        if kind == b"P":
            name, text = _texts(body, 2)
            self._named[name] = text
        elif kind == b"B":
            portal, name = _texts(body, 2)
            self._portals[portal] = self._named.get(name, "")
        elif kind == b"E":
            return self._runs(self._portals.get(_texts(body, 1)[0], ""))
        elif kind == b"Q":
            return self._runs(_texts(body, 1)[0]) or self._ends()
        elif kind == b"S":
            return self._ends()
        return None

    def _runs(self, text: str) -> When | None:
        word = text.lstrip().partition(" ")[0].rstrip(";").upper()
        if word == "BEGIN":
            self._in_transaction, self._statements = True, []
        elif word == "COMMIT":
            self._in_transaction = False
            return self._commits()
        elif word == "ROLLBACK" and " TO " not in text.upper():
            self._in_transaction, self._statements = False, []
        else:
            self._statements.append(text)
        return None

    def _ends(self) -> When | None:
        """Return what is to be done at a synchronisation; inside a transaction it commits nothing."""
        return None if self._in_transaction else self._commits()

    def _commits(self) -> When | None:
        statements, self._statements = self._statements, []
        cut = self._proxy.cut
        return cut.when if cut and cut.due(statements) else None

    # -- from the server -----------------------------------------------------------------------

    def _answer(self) -> None:
        with suppress(OSError, EOFError):
            while True:
                kind, body = _message(self._server)
                last = kind == b"Z" and bool(self._syncs) and self._syncs.popleft()
                if not self._muted:
                    self._client.sendall(_framed(kind, body))
                if last:
                    break
        if not self.silent:
            self.close()


def _message(end: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(end, 5)
    return head[:1], _exactly(end, int.from_bytes(head[1:]) - 4)


def _framed(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4) + body


def _exactly(end: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = end.recv(min(MOST, size - len(found)))
        if not part:
            raise EOFError
        found += part
    return found


def _texts(body: bytes, count: int) -> list[str]:
    return [part.decode() for part in body.split(b"\0", count)[:count]]


@contextmanager
def before(upstream: str) -> Iterator[Proxy]:
    """Put a proxy before the database for a while."""
    proxy = Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
