"""What happens in threads, for this process's open pages: one broker subscription and one poll, fanned out.

The rows are the truth: a publish only makes the poll come sooner. Without the broker the poll comes four times a second.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from typing import Any
from uuid import UUID

import psycopg
import redis
import redis.asyncio
import structlog
from django.conf import settings
from psycopg_pool import PoolTimeout

from agent import events
from ledger import connections

log = structlog.get_logger()

SAFETY_SECONDS = 2.0  # between polls while the broker answers: whoever only writes rows is heard so
DEAF_SECONDS = 0.25  # between polls while it does not
RECONNECT_SECONDS = 1.0
IDLE_CHANNEL = "backstop:web"  # keeps the subscription open while nobody watches

EVENTS = """
SELECT e.thread, e.seq, e.kind FROM unnest(%(threads)s::uuid[], %(seqs)s::bigint[]) AS w (thread, seq)
JOIN public.agent_event e ON e.thread = w.thread AND e.seq > w.seq ORDER BY e.thread, e.seq
"""
DRAFTS = "SELECT thread, text FROM public.agent_draft WHERE thread = ANY(%(threads)s)"
NOW = """
SELECT coalesce((SELECT seq FROM public.agent_feed WHERE thread = %(thread)s), 0),
       coalesce((SELECT text FROM public.agent_draft WHERE thread = %(thread)s), '')
"""


@dataclass(eq=False, kw_only=True)
class Listener:
    """One open page. What it has not fetched yet is folded together, so that a slow one costs nothing."""

    seq: int | None = None  # of the newest event it was given; None until it has caught up
    events: dict[str, int] = field(default_factory=dict)  # kind → newest seq
    draft: str | None = None
    ring: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> tuple[dict[str, int], str | None]:
        """Return what came since the last call."""
        taken = self.events, self.draft
        self.events, self.draft = {}, None
        self.ring.clear()
        return taken


@dataclass(eq=False, kw_only=True)
class Watch:
    """A thread that somebody watches."""

    draft: str = ""
    listeners: set[Listener] = field(default_factory=set)

    @property
    def seq(self) -> int | None:
        """Return the newest event that everybody has who has caught up: one page may be ahead of another."""
        return min((listener.seq for listener in self.listeners if listener.seq is not None), default=None)


class Hub:
    """One of a process and event loop; its tasks run while somebody listens."""

    def __init__(self) -> None:
        self.watches: dict[UUID, Watch] = {}
        self.wake = asyncio.Event()
        self.closing = asyncio.Event()
        self.hears = False
        self.tried = asyncio.Event()  # to reach the broker, with or without success
        self.tasks: list[asyncio.Task[None]] = []
        self.pubsub: Any = None

    @asynccontextmanager
    async def listen(self, thread: UUID, *, after: int | None) -> AsyncIterator[Listener]:
        """Give what happens in the thread after event `after` (None: from now on), and the draft as it is."""
        watch = self.watches.setdefault(thread, Watch())
        listener = Listener()
        watch.listeners.add(listener)
        self._start()
        try:
            await self.tried.wait()
            await self._subscribe(thread)
            await self._catch_up(thread, listener, after=after)
            yield listener
        finally:
            await self._forget(thread, watch, listener)

    def close(self) -> None:
        """End every stream: the process stops."""
        self.closing.set()
        for watch in self.watches.values():
            for listener in watch.listeners:
                listener.ring.set()

    # -- watching --------------------------------------------------------------------------------

    async def _catch_up(self, thread: UUID, listener: Listener, *, after: int | None) -> None:
        seq, draft = await asyncio.to_thread(_now, thread)
        if after is not None and seq > after:
            listener.events["feed"] = seq
        listener.seq = seq
        if draft and listener.draft is None:  # what was heard meanwhile is newer than the row
            listener.draft = draft
        if listener.events or listener.draft:
            listener.ring.set()

    async def _forget(self, thread: UUID, watch: Watch, listener: Listener) -> None:
        watch.listeners.discard(listener)
        if not watch.listeners and self.watches.get(thread) is watch:
            del self.watches[thread]
            if self.pubsub is not None and self.hears:
                with suppress(redis.RedisError, OSError):
                    await self.pubsub.unsubscribe(events.channel(thread))
        if not self.watches:
            self._stop()

    def _start(self) -> None:
        if not self.tasks:
            self.tasks = [asyncio.create_task(self._hear_for_ever()), asyncio.create_task(self._poll_for_ever())]

    def _stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.tasks, self.hears, self.pubsub = [], False, None
        self.tried.clear()

    def _give(self, thread: UUID, *, kind: str = "", seq: int = 0, draft: str | None = None) -> None:
        """Hand something to every listener of a thread that does not have it yet."""
        watch = self.watches.get(thread)
        for listener in watch.listeners if watch else ():
            if kind and listener.seq is not None and seq > listener.seq:
                listener.events[kind] = listener.seq = seq
            if draft is not None:
                listener.draft = draft
            listener.ring.set()

    # -- the broker ------------------------------------------------------------------------------

    async def _hear_for_ever(self) -> None:
        while True:
            client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, health_check_interval=15)
            try:
                await self._hear(client)
            except (redis.RedisError, OSError) as error:
                log.warning("agent.hub.broker_lost", error=type(error).__name__)
            finally:
                self.tried.set()
                await client.aclose()
            self.wake.set()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _hear(self, client: Any) -> None:
        async with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe(IDLE_CHANNEL)
            self.pubsub, self.hears = pubsub, True  # from here on, newcomers subscribe themselves
            self.tried.set()
            try:
                await self._listen_to(pubsub)
            finally:
                if self.pubsub is pubsub:  # not the one of tasks that were started since
                    self.pubsub, self.hears = None, False

    async def _listen_to(self, pubsub: Any) -> None:
        if self.watches:
            await pubsub.subscribe(*(events.channel(thread) for thread in self.watches))
        self.wake.set()  # whatever was said before is in the rows
        while True:
            message = await pubsub.get_message(timeout=5.0)
            if message is not None:
                self._heard(message["channel"], message["data"])

    def _heard(self, channel: bytes, data: bytes) -> None:
        try:
            thread, said = UUID(channel.decode().rpartition(":")[2]), loads(data)
        except (ValueError, JSONDecodeError):
            return  # the idle channel, or not one of ours
        if said.get("kind") == "draft":
            self._draft(thread, str(said.get("text", "")))
        else:
            self.wake.set()

    async def _subscribe(self, thread: UUID) -> None:
        if self.pubsub is not None and self.hears:
            with suppress(redis.RedisError, OSError):  # the reader of the same connection sees it and reconnects
                await self.pubsub.subscribe(events.channel(thread))

    def _draft(self, thread: UUID, text: str) -> None:
        watch = self.watches.get(thread)
        if watch and text != watch.draft:
            watch.draft = text
            self._give(thread, draft=text)

    # -- the rows --------------------------------------------------------------------------------

    async def _poll_for_ever(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), SAFETY_SECONDS if self.hears else DEAF_SECONDS)
            self.wake.clear()
            try:
                await self._poll()
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("agent.hub.database_lost", error=type(error).__name__)
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _poll(self) -> None:
        known = {thread: watch.seq for thread, watch in self.watches.items() if watch.seq is not None}
        happened, drafts = await asyncio.to_thread(_changes, known)
        for thread, seq, kind in happened:
            if watch := self.watches.get(thread):
                watch.draft = "" if kind == "feed" else watch.draft
                self._give(thread, kind=kind, seq=seq)
        for thread, text in drafts:
            watch = self.watches.get(thread)
            if watch and not watch.draft.startswith(text):  # a row is never ahead of what was published
                self._draft(thread, text)


def _now(thread: UUID) -> tuple[int, str]:
    with connections.pool().connection() as conn:
        row = conn.execute(NOW, {"thread": thread}).fetchone()
    return (row[0], row[1]) if row else (0, "")


def _changes(known: dict[UUID, int]) -> tuple[list[Any], list[Any]]:
    """Return events newer than the known ones, and the drafts, of the given threads."""
    values = {"threads": list(known), "seqs": list(known.values())}
    with connections.pool().connection() as conn:
        return conn.execute(EVENTS, values).fetchall(), conn.execute(DRAFTS, values).fetchall()
