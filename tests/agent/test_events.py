"""Events: numbered without holes a reader could fall into, and published without ever failing the publisher."""

import json
import threading
from typing import Any
from uuid import uuid4

import pytest
import redis

from agent import events


def numbers(conn: Any, thread: Any) -> list[int]:
    return [row[0] for row in conn.execute("SELECT seq FROM public.agent_event WHERE thread = %s ORDER BY seq", (thread,))]


def test_it_numbers_the_events_of_a_thread(agent: Any) -> None:
    thread, other = uuid4(), uuid4()
    for target in (thread, other, thread):
        events.emit(agent, thread=target, kind="feed")
    assert (numbers(agent, thread), numbers(agent, other)) == ([1, 2], [1])


def test_it_gives_no_number_to_what_was_rolled_back(agent: Any) -> None:
    thread = uuid4()
    events.emit(agent, thread=thread, kind="feed")
    with pytest.raises(ZeroDivisionError), agent.transaction():
        events.emit(agent, thread=thread, kind="status")
        raise ZeroDivisionError
    events.emit(agent, thread=thread, kind="feed")
    assert numbers(agent, thread) == [1, 2]


@pytest.mark.parametrize("login", ["web", "agent", "outbox"])
def test_it_is_open_to_each_login_that_changes_a_thread(connect: Any, login: str) -> None:
    thread = uuid4()
    events.emit(connect(login), thread=thread, kind="escalation")
    assert numbers(connect("web"), thread) == [1]


def test_it_orders_two_writers_by_the_row_lock(connect: Any) -> None:
    first, second, thread = connect("agent"), connect("outbox"), uuid4()
    with first.transaction():
        events.emit(first, thread=thread, kind="feed")
        waiting = threading.Thread(target=events.emit, args=(second,), kwargs={"thread": thread, "kind": "feed"})
        waiting.start()
        assert numbers(connect("web"), thread) == []
    waiting.join(10)
    assert numbers(connect("web"), thread) == [1, 2]


def test_it_publishes_to_the_thread_s_channel() -> None:
    thread = uuid4()
    listener = events.broker().pubsub(ignore_subscribe_messages=True)
    listener.subscribe(events.channel(thread))
    listener.get_message(timeout=5)
    assert events.publish(thread, "draft", text="Über")
    heard = listener.get_message(timeout=5)
    listener.close()
    assert heard is not None
    assert json.loads(heard["data"]) == {"kind": "draft", "text": "Über"}


def test_it_survives_a_dead_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "broker", lambda: redis.Redis(port=1))
    monkeypatch.setattr(events._Silence, "until", 0.0)
    assert events.publish(uuid4(), "feed") is False
