"""The stream of one conversation: server-sent events `draft`, `feed`, `status` and `escalation`.

`id:` is the number of the thread's newest event, so a browser that reconnects says what it has seen. Nothing in here holds
a database connection while it waits.
"""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.html import escape
from django.views.decorators.http import require_GET

from agent.hub import Hub, Listener
from agent.models import Conversation
from agent.permissions import check_user_can_read

HEARTBEAT_SECONDS = 15.0
LONGEST_SECONDS = 300.0  # then the browser connects again, and roles and log-in are checked again
RETRY_MS = 1000

_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


@require_GET
async def stream(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Stream what happens in the conversation."""
    thread = await sync_to_async(_allowed)(request, pk)
    response = StreamingHttpResponse(told(thread, after=_after(request)), content_type="text/event-stream; charset=utf-8")
    response["X-Accel-Buffering"] = "no"
    return response


def _allowed(request: HttpRequest, pk: int) -> UUID:
    """Return the conversation's thread, if this person may read it; give the connection back at once."""
    try:
        check_user_can_read(request.user)
        thread: UUID = get_object_or_404(Conversation, pk=pk).thread
        return thread
    finally:
        connection.close()  # to the pool: the request lives as long as the stream


def _after(request: HttpRequest) -> int | None:
    """Return the event that the browser has seen last."""
    said = request.headers.get("Last-Event-ID") or request.GET.get("after") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) <= 18 else None


async def told(thread: UUID, *, after: int | None) -> AsyncIterator[bytes]:
    """Yield the stream's bytes until the process stops, or for five minutes."""
    hub, clock = hub_of_this_loop(), asyncio.get_running_loop().time
    end = clock() + LONGEST_SECONDS
    yield f"retry: {RETRY_MS}\n\n".encode()
    async with hub.listen(thread, after=after) as listener:
        while not hub.closing.is_set() and (left := end - clock()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(listener.ring.wait(), min(left, HEARTBEAT_SECONDS))
            yield b"".join(_messages(listener)) or b": still here\n\n"


def _messages(listener: Listener) -> list[bytes]:
    happened, draft = listener.take()
    # What was being written comes first: it may be part of what has happened since.
    found = [message("draft", escape(draft))] if draft is not None else []
    return found + [message(kind, str(seq), id=seq) for kind, seq in sorted(happened.items(), key=lambda item: item[1])]


def message(event: str, data: str, *, id: int | None = None) -> bytes:  # noqa: A002 - the protocol's word
    """Return one server-sent event; every line of the data is a field of its own."""
    lines = [f"data: {line}" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    head = [f"event: {event}"] + ([f"id: {id}"] if id is not None else [])
    return ("\n".join([*head, *lines]) + "\n\n").encode()


def hub_of_this_loop() -> Hub:
    """Return the hub of the running event loop, made at the first stream."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
        _close_on_signals(loop, _hubs[loop])
    return _hubs[loop]


def _close_on_signals(loop: asyncio.AbstractEventLoop, hub: Hub) -> None:
    """End the streams when the server is asked to stop; its own handler runs as before."""
    if threading.current_thread() is not threading.main_thread():
        return  # a server inside a thread is stopped by whoever started it

    for number in (signal.SIGTERM, signal.SIGINT):
        previous = signal.getsignal(number)

        def close(received: int, frame: Any, before: Any = previous) -> None:
            loop.call_soon_threadsafe(hub.close)
            if callable(before):
                before(received, frame)

        signal.signal(number, close)
