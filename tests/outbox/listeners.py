"""A mail server and a chat's webhook that keep what they are sent, and answer as they are told."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Listener:
    """One server: its port, the answers that it gives first, and what it got."""

    port: int = 0
    answers: list[int] = field(default_factory=list)  # codes; then it agrees
    got: list[str] = field(default_factory=list)

    def answer(self, usual: int) -> int:
        """Return the next code."""
        return self.answers.pop(0) if self.answers else usual


@contextmanager
def mail() -> Iterator[Listener]:
    """Run a server that speaks as much SMTP as a client without TLS needs."""
    listener = Listener()

    class Talk(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 ready\r\n")
            for line in self.rfile:
                verb = line[:4].upper()
                if verb == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    self.keep()
                elif verb == b"QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                else:
                    code = listener.answer(250) if verb == b"RCPT" else 250
                    self.wfile.write(b"%d said\r\n" % code)

        def keep(self) -> None:
            lines = iter(self.rfile.readline, b".\r\n")
            listener.got.append(b"".join(lines).decode())
            self.wfile.write(b"250 kept\r\n")

    yield from _serve(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk), listener)


@contextmanager
def chat() -> Iterator[Listener]:
    """Run a webhook that takes JSON."""
    listener = Listener()

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
            code = listener.answer(200)
            if code == 200:
                listener.got.append(text)
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    yield from _serve(ThreadingHTTPServer(("127.0.0.1", 0), Post), listener)


def _serve(server: Any, listener: Listener) -> Iterator[Listener]:
    listener.port = server.server_address[1]
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield listener
        server.shutdown()
