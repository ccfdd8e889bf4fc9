"""HTTP over threads: reads calls, lets faults spoil them, writes answers.

The standard library's server, because a fault needs the socket itself: a reset before or after the call was executed, a body
that ends early. An ASGI server hides the socket and repairs or refuses such answers.
"""

import contextlib
import logging
import secrets
import socket
import socketserver
import struct
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from sandbox.stripe import faults, refusals
from sandbox.stripe.api import Api
from sandbox.stripe.control import Control
from sandbox.stripe.exchange import Answer, Call, as_json
from sandbox.stripe.limits import Limiter

log = logging.getLogger(__name__)
LARGEST = 1_000_000  # bytes of a body
IDLE = 120  # seconds that a connection may be silent


class Server(ThreadingHTTPServer):
    """The listening socket, and what its handlers serve."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], *, api: Api, control: Control, rules: faults.Faults, limiter: Limiter) -> None:
        self.api = api
        self.control = control
        self.rules = rules
        self.limiter = limiter
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind without the reverse look-up of the host's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what a handler raised; a client that went away is nothing to report."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            log.exception("a connection failed")


class Handler(BaseHTTPRequestHandler):
    """One connection; a wire that answers leave by."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one packet
    timeout = IDLE

    def do_GET(self) -> None:
        """Answer a GET."""
        self._serve()

    do_POST = do_DELETE = do_GET

    def _serve(self) -> None:
        self._started = time.monotonic()
        self._call: Call | None = None
        problem = self._unreadable()
        if problem:
            self.close_connection = True
            return self.send(problem)
        self._call = call = self._read()
        if call.path.startswith("/_sandbox/"):
            return self.send(self.server.control.answer(call))
        if not self.server.limiter.lets_through(call):
            return self.send(refusals.rate_limited(wait=1).answer())
        key = call.headers.get("idempotency-key")
        if not faults.before(self.server.rules.strike("before", call), wire=self, key=key):
            answer = self.server.api.answer(call)
            faults.after(self.server.rules.strike("after", call), wire=self, answer=answer)

    def _unreadable(self) -> Answer | None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            return as_json(411, {"error": {"type": "invalid_request_error", "message": "A body needs a Content-Length."}})
        if int(length) > LARGEST:
            return as_json(413, {"error": {"type": "invalid_request_error", "message": "The body is too large."}})
        return None

    def _read(self) -> Call:
        url = urlsplit(self.path)
        return Call(
            method=self.command,
            path=url.path,
            query=url.query,
            body=self.rfile.read(int(self.headers.get("Content-Length", "0"))),
            headers={name.lower(): value for name, value in self.headers.items()},
            request_id="req_" + secrets.token_hex(7),
            hang_up=self.hang_up,
        )

    def send(self, answer: Answer, *, cut_after: int | None = None) -> None:
        """Write an answer, or only the first bytes of its body; nothing is written on a connection that was hung up."""
        self._log(str(answer.status))
        if self.rfile.closed:
            return
        self.send_response_only(answer.status)
        for name, value in self._headers(answer).items():
            self.send_header(name, value)
        if cut_after is not None:
            self.close_connection = True
        self.end_headers()
        self.wfile.write(answer.body[:cut_after])

    def _headers(self, answer: Answer) -> dict[str, str]:
        own = {"Content-Type": "application/json", "Content-Length": str(len(answer.body))}
        if self.close_connection:
            own["Connection"] = "close"
        if self._call:
            own["Request-Id"] = self._call.request_id
            for name in ("Idempotency-Key", "Stripe-Version", "Stripe-Account"):
                if value := self._call.headers.get(name.lower()):
                    own[name] = value
        return own | dict(answer.headers)

    def hang_up(self) -> None:
        """Reset the connection now: the client reads neither an answer nor an orderly end."""
        self._log("hung up")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.close()
        self.rfile.close()
        self.connection.close()

    def _log(self, result: str) -> None:
        request_id = self._call.request_id if self._call else "-"
        took = 1000 * (time.monotonic() - self._started)
        log.info("%s %s %s %s %.1f ms", self.command, self.path.partition("?")[0], result, request_id, took)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log what the base class reports: requests that are not HTTP."""
        log.info(format, *args)
