"""Checkpoints: fenced, strict, in the order of time, and never apart from the transcript."""

import logging
import os
from collections.abc import Iterator
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base import id as clock
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent import leases
from agent.checkpoints import ClockWentBack, FencedSaver, follow
from agent.leases import Lease, LeaseLost
from tests.agent.talks import Talk


@pytest.fixture
def own_clock() -> Iterator[None]:
    """Let the clock of the ids go on afterwards as if it had not been told of another."""
    last = clock._last_v6_timestamp
    yield
    clock._last_v6_timestamp = last


def lease_of(talk: Talk) -> Lease:
    with talk.pool.connection() as conn:
        lease = leases.acquire(conn, thread=talk.thread)
    assert lease
    return lease


def config(talk: Talk, **more: str) -> Any:
    return {"configurable": {"thread_id": str(talk.thread), "checkpoint_ns": "", **more}}


def put(talk: Talk, saver: FencedSaver, *messages: Any, after: str | None = None, named: str | None = None) -> str:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = named or checkpoint["id"]
    checkpoint["channel_values"] = {"messages": list(messages)}
    checkpoint["channel_versions"] = {"messages": "1"}
    more = {"checkpoint_id": after} if after else {}
    saver.put(config(talk, **more), checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"messages": "1"})
    return checkpoint["id"]


def test_it_writes_checkpoint_transcript_and_event_together(talk: Talk) -> None:
    saver = FencedSaver(talk.pool, lease_of(talk))
    put(talk, saver, HumanMessage("Hello", id="a"), AIMessage("Hi", id="b"))
    assert talk.transcript() == [("human", "Hello"), ("ai", "Hi")]
    assert talk.rows("SELECT kind FROM public.agent_event ORDER BY seq")[-1] == ("feed",)


def test_it_writes_nothing_when_the_transcript_cannot_be_written(talk: Talk) -> None:
    saver = FencedSaver(talk.pool, lease_of(talk))
    talk.owner.execute("ALTER TABLE public.agent_transcript_entry ADD CONSTRAINT no CHECK (text <> 'no') NOT VALID")
    try:
        with pytest.raises(Exception, match="no"):
            put(talk, saver, HumanMessage("no", id="a"))
    finally:
        talk.owner.execute("ALTER TABLE public.agent_transcript_entry DROP CONSTRAINT no")
    assert talk.one("SELECT count(*) FROM public.checkpoints") == 0
    assert talk.one("SELECT count(*) FROM public.checkpoint_blobs") == 0


def test_it_refuses_a_worker_that_lost_its_lease(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    lost: list[int] = []
    old = FencedSaver(talk.pool, lease_of(talk), on_lost=lambda: lost.append(1))
    talk.expire()
    new = FencedSaver(talk.pool, lease_of(talk))
    with caplog.at_level(logging.WARNING), pytest.raises(LeaseLost):
        put(talk, old, HumanMessage("zombie", id="z"))
    with pytest.raises(LeaseLost):
        old.put_writes(config(talk, checkpoint_id="1"), [("messages", [HumanMessage("zombie", id="z")])], "task")
    with pytest.raises(LeaseLost):
        old.delete_thread(str(talk.thread))
    assert lost == [1, 1, 1]
    put(talk, new, HumanMessage("alive", id="a"))
    assert talk.transcript() == [("human", "alive")]
    assert talk.one("SELECT count(*) FROM public.checkpoint_writes") == 0


def test_it_refuses_a_clock_that_is_behind(talk: Talk) -> None:
    saver = FencedSaver(talk.pool, lease_of(talk))
    newest = put(talk, saver, HumanMessage("one", id="a"))
    with pytest.raises(ClockWentBack):
        put(talk, saver, HumanMessage("two", id="b"), after=newest, named="1" + newest[1:])
    assert talk.transcript() == [("human", "one")]


def test_it_makes_ids_that_sort_after_one_from_a_clock_that_is_ahead(own_clock: None) -> None:
    ahead = clock.UUID(int=uuid6().int + (3600 * 10**7 >> 12 << 80), version=6)  # an hour
    follow(str(ahead))
    later = [str(uuid6()) for _ in range(3)]
    assert [str(ahead), *later] == sorted([str(ahead), *later])


def test_it_writes_a_message_s_row_once_and_again_when_its_words_change(talk: Talk) -> None:
    saver = FencedSaver(talk.pool, lease_of(talk))
    first = put(talk, saver, HumanMessage("Hello", id="a"))
    put(talk, saver, HumanMessage("Hello", id="a"), AIMessage("Hi", id="b"), after=first)
    put(talk, saver, HumanMessage("Hello", id="a"), AIMessage("Hi there", id="b"))
    assert talk.transcript() == [("human", "Hello"), ("ai", "Hi there")]
    assert talk.one("SELECT count(DISTINCT written_at) FROM public.agent_transcript_entry") == 2


def test_it_swaps_the_draft_for_the_message(talk: Talk) -> None:
    lease = lease_of(talk)
    talk.owner.execute(
        "INSERT INTO public.agent_draft (thread, fence, text) VALUES (%s, %s, 'Hi th')", (talk.thread, lease.fence)
    )
    saver = FencedSaver(talk.pool, lease)
    first = put(talk, saver, HumanMessage("Hello", id="a"))
    assert talk.one("SELECT count(*) FROM public.agent_draft") == 1
    put(talk, saver, HumanMessage("Hello", id="a"), AIMessage("Hi there", id="b"), after=first)
    assert talk.one("SELECT count(*) FROM public.agent_draft") == 0


def test_it_never_calls_what_a_row_names(talk: Talk) -> None:
    assert FencedSaver(talk.pool, Lease(thread=talk.thread, fence=1)).serde.__class__ is JsonPlusSerializer
    inner = ormsgpack.packb(("os", "getcwd", []))
    loaded = PostgresSaver(talk.pool).serde.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(0, inner))))  # type: ignore[arg-type]
    assert loaded != os.getcwd()
