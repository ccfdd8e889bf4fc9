"""What a process does before it says that it is ready: whoever comes first would wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import redis
import structlog
from django.conf import settings
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from ledger import connections

log = structlog.get_logger()

# By the process's login. Paths, because a process imports only what is its own: LangGraph comes with the agent's.
CONNECT = ("ledger.connections.connect", "outbox.bell.connect", "agent.events.connect")
STEPS: dict[str, tuple[str, ...]] = {
    "web": CONNECT,
    "agent": (*CONNECT, "agent.readiness.prepare"),
    "outbox": (*CONNECT, "outbox.readiness.prepare"),
}
AWAY = (*connections.AWAY, redis.RedisError, OperationalError, OSError)


def prepare() -> None:
    """Take this process's steps. One that fails is logged and keeps nobody from starting: its first use says what is wrong."""
    for step in STEPS.get(settings.LOGIN, ()):
        try:
            import_string(step)()
        except Exception as error:
            unexpected = None if isinstance(error, AWAY) else error
            log.warning("config.readiness.missed", step=step, error=type(error).__name__, exc_info=unexpected)


async def lifespan(receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Answer what an ASGI server says of its own life: it listens once we are prepared."""
    while (await receive())["type"] == "lifespan.startup":
        await asyncio.to_thread(prepare)
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
