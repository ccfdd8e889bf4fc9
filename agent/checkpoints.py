"""Checkpoints that a worker without the lease cannot write, and that bring the transcript and browsers up to date with them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.base import id as clock
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Cursor
from psycopg.rows import DictRow

from agent import drafts, events, transcript
from agent.leases import FENCE, UNHURRIED, Lease, LeaseLost
from agent.runs import Pool
from ledger import faults


class ClockWentBack(Exception):
    """What is to be written would sort before its parent: another machine's clock is ahead, and ours did not follow it."""


class FencedSaver(PostgresSaver):
    """The checkpoints of one run. Each write is one implicit transaction (a pipeline) that begins with the fence."""

    def __init__(self, pool: Pool, lease: Lease, *, on_lost: Callable[[], None] = lambda: None) -> None:
        super().__init__(pool)
        self._lease, self._on_lost = lease, on_lost
        self._known: dict[str, Any] = {}  # the messages that have their transcript rows
        self._beside = threading.local()  # what goes into the transaction that this thread is in

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint; its messages have their rows, written with it."""
        found = super().get_tuple(config)
        if found:
            follow(found.checkpoint["id"])
            self._known.update(transcript.seen(_messages(found.checkpoint)))
        return found

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Write a checkpoint, and the rows of the messages that it holds first. Raises LeaseLost, ClockWentBack."""
        parent = config["configurable"].get("checkpoint_id")
        if parent and checkpoint["id"] <= parent:
            raise ClockWentBack(f"checkpoint {checkpoint['id']} would sort before {parent}")
        messages = _messages(checkpoint) if "messages" in new_versions else []
        rows = transcript.changed(messages, known=self._known, thread=self._lease.thread)
        self._beside.rows, self._beside.point = rows, "checkpoint.put_inside"
        faults.reach("checkpoint.put", thread=self._lease.thread)
        try:
            written = super().put(config, checkpoint, metadata, new_versions)
        finally:
            self._beside.rows = []
        faults.reach("checkpoint.put_done", thread=self._lease.thread)
        follow(checkpoint["id"])  # should another thread of this process have set the clock back at that very moment
        if rows:
            self._known.update(transcript.seen(messages))
            events.publish(self._lease.thread, "feed")
        return written

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Write what a node returned, without waiting for the disk: lost, the node runs again and the ledger answers."""
        self._beside.unhurried, self._beside.point = True, "checkpoint.writes_inside"
        faults.reach("checkpoint.writes", thread=self._lease.thread)
        try:
            super().put_writes(config, writes, task_id, task_path)
        finally:
            self._beside.unhurried = False
        faults.reach("checkpoint.writes_done", thread=self._lease.thread)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Open a cursor; a pipelined one is a write, so the fence goes before it and the rows beside it."""
        try:
            with super()._cursor(pipeline=pipeline) as cursor:
                if pipeline:
                    cursor.execute(FENCE, (self._lease.thread, self._lease.fence))
                    if getattr(self._beside, "unhurried", False):
                        cursor.execute(UNHURRIED)
                yield cursor
                if pipeline:
                    self._write_beside(cursor, getattr(self._beside, "rows", []))
                    self._reach_inside(cursor)
        except psycopg.Error as error:
            if error.sqlstate != "BS001":
                raise
            self._on_lost()
            raise LeaseLost from error

    def _reach_inside(self, cursor: Cursor[DictRow]) -> None:
        """Come by a fault point with everything at the server but the synchronisation that would commit it."""

        def arrive() -> None:
            cursor.connection.pgconn.send_flush_request()
            cursor.connection.pgconn.flush()

        faults.reach(self._beside.point, thread=self._lease.thread, first=arrive)

    def _write_beside(self, cursor: Cursor[DictRow], rows: Sequence[transcript.Row]) -> None:
        if not rows:
            return
        transcript.write(cursor, rows)
        if any(row["role"] == "ai" for row in rows):
            cursor.execute(drafts.CLEAR, (self._lease.thread, self._lease.fence))
        events.emit(cursor, thread=self._lease.thread, kind="feed")


_following = threading.Lock()


def follow(checkpoint_id: str) -> None:
    """Let every later checkpoint id of this process sort after this one, whatever the clocks of the machines say.

    The newest checkpoint is the one with the greatest id, and ids are made from the time. LangGraph keeps the last time that
    it used, and uses the next one when the clock is not ahead of it: there is no other way to tell it of a time.
    """
    made_at = clock.UUID(hex=checkpoint_id).time
    with _following:
        clock._last_v6_timestamp = max(clock._last_v6_timestamp or 0, made_at)  # type: ignore[assignment]


def _messages(checkpoint: Checkpoint) -> list[BaseMessage]:
    found: list[BaseMessage] = checkpoint["channel_values"].get("messages", [])
    return found
