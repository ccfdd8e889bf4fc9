"""The stream of a conversation, from a real web process to a real client."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
from django.conf import settings

from agent import events
from agent.stream import message
from tests import plugin
from tests.agent.scenes import Scene, make_user
from tests.agent.serving import Server, serving, session_of
from tests.waiting import until

Connection = psycopg.Connection[Any]
DEAF = {"REDIS_URL": "redis://127.0.0.1:1/0"}  # nobody listens there


def client(server: Server, user: Any) -> httpx.Client:
    return httpx.Client(base_url=server.address, cookies={"sessionid": session_of(user)}, timeout=20, trust_env=False)


class Listening:
    """An open stream, read event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.headers = response.status_code, response.headers
        self._lines = response.iter_lines()

    def next(self) -> dict[str, str]:
        """Return the next event, its data's lines joined; comments and `retry:` are passed over."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line and "event" in found:
                return found
            name, _, value = line.partition(": ")
            if name == "data" and "data" in found:
                value = f"{found['data']}\n{value}"
            if name in ("event", "data", "id"):
                found[name] = value
        raise AssertionError("the stream ended")


@contextmanager
def listening(http: httpx.Client, scene: Scene, *, after: int | None = None, last: str | None = None) -> Iterator[Listening]:
    query = "" if after is None else f"?after={after}"
    headers = {"Last-Event-ID": last} if last else {}
    with http.stream("GET", f"/conversations/{scene.conversation.pk}/stream/{query}", headers=headers) as response:
        yield Listening(response)


def subscribed(scene: Scene) -> bool:
    """Return whether a web process hears what is published for the thread; what was published before is lost on it."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        ((_, listeners),) = broker.pubsub_numsub(events.channel(scene.desk.thread))
    return bool(listeners)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a web process with a broker."""
    with serving() as found:
        yield found


def test_it_says_that_something_happened(server: Server, scene: Scene) -> None:
    with client(server, scene.staff) as http, listening(http, scene, after=0) as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        for number, kind in enumerate(("feed", "status", "escalation"), start=1):
            began = time.monotonic()
            scene.emits(kind)
            assert stream.next() == {"event": kind, "id": str(number), "data": str(number)}
            assert time.monotonic() - began < 1


def test_it_streams_the_text_as_it_grows_escaped_and_whole(server: Server, scene: Scene) -> None:
    with client(server, scene.staff) as http, listening(http, scene, after=0) as stream:
        scene.emits()
        stream.next()
        until(lambda: subscribed(scene), what="a web process that listens")
        for text in ("Hel", "Hello <b>", "Hello <b>\nand & more"):
            events.publish(scene.desk.thread, "draft", text=text)
            expected = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            assert stream.next() == {"event": "draft", "data": expected}


def test_it_goes_on_where_a_dropped_connection_was(server: Server, scene: Scene) -> None:
    for _ in range(3):
        scene.emits()
    scene.drafts("So far")
    with client(server, scene.staff) as http:
        with listening(http, scene, last="1") as stream:
            # In this order: a page that fetches what has happened finds out what became of the text.
            assert stream.next() == {"event": "draft", "data": "So far"}
            assert stream.next() == {"event": "feed", "id": "3", "data": "3"}
        with listening(http, scene, last="3") as stream:
            assert stream.next() == {"event": "draft", "data": "So far"}


def test_it_hears_rows_that_nobody_published(server: Server, scene: Scene) -> None:
    with client(server, scene.staff) as http, listening(http, scene, after=0) as stream:
        with scene.desk.pool.connection() as conn:
            events.emit(conn, thread=scene.desk.thread, kind="feed")
        assert stream.next()["event"] == "feed"


def test_it_works_without_a_broker(scene: Scene) -> None:
    with serving(**DEAF) as server, client(server, scene.staff) as http, listening(http, scene, after=0) as stream:
        for number in range(1, 4):
            began = time.monotonic()
            with scene.desk.pool.connection() as conn:
                events.emit(conn, thread=scene.desk.thread, kind="feed")
            assert stream.next()["id"] == str(number)
            assert time.monotonic() - began < 2
        scene.drafts("Hel")
        assert stream.next() == {"event": "draft", "data": "Hel"}
        scene.drafts("Hello")
        assert stream.next() == {"event": "draft", "data": "Hello"}


def test_it_survives_the_loss_and_the_return_of_the_broker(scene: Scene, tmp_path: Path) -> None:
    from sandbox.servers import valkey

    broker = valkey.Server(data=tmp_path / "valkey")
    broker.start()
    try:
        with (
            serving(REDIS_URL=broker.url()) as server,
            client(server, scene.staff) as http,
            listening(http, scene, after=0) as stream,
        ):
            scene.emits()
            assert stream.next()["id"] == "1"
            broker.stop()
            scene.emits()
            assert stream.next()["id"] == "2"
            broker.start()
            scene.emits()
            assert stream.next()["id"] == "3"
            until(lambda: _subscribers(broker.url(), scene) == 1, seconds=10)
    finally:
        broker.stop()


def _subscribers(url: str, scene: Scene) -> int:
    with redis.Redis.from_url(url) as found:
        return int(found.pubsub_numsub(events.channel(scene.desk.thread))[0][1])


def test_it_gives_each_page_its_own_place(server: Server, scene: Scene) -> None:
    with client(server, scene.staff) as http, ExitStack() as stack:
        streams = [stack.enter_context(listening(http, scene, after=0)) for _ in range(5)]
        scene.emits()
        assert [stream.next()["id"] for stream in streams] == ["1"] * 5
        late = stack.enter_context(listening(http, scene, after=0))
        assert late.next()["id"] == "1"
        scene.emits()
        assert [stream.next()["id"] for stream in [*streams, late]] == ["2"] * 6


def test_it_tells_an_open_page_what_a_page_that_opens_has_read_already(server: Server, scene: Scene) -> None:
    with client(server, scene.staff) as http, listening(http, scene, after=0) as before:
        for number in range(1, 6):
            with scene.desk.pool.connection() as conn:  # nobody rings: the next look at the rows is up to two seconds away
                events.emit(conn, thread=scene.desk.thread, kind="feed")
            with listening(http, scene, after=0) as late:
                assert late.next()["id"] == str(number)
            assert before.next()["id"] == str(number)


def test_it_holds_no_connection_while_it_waits(scene: Scene, superuser: Connection) -> None:
    def held() -> int:
        row = superuser.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = 'backstop_web'", (plugin.DATABASE,)
        ).fetchone()
        return int(row[0]) if row else 0

    limits = httpx.Limits(max_connections=100)
    cookies = {"sessionid": session_of(scene.staff)}
    with serving() as server, ExitStack() as stack:
        before = held()
        given = {"base_url": server.address, "cookies": cookies, "timeout": 30, "trust_env": False, "limits": limits}
        http = stack.enter_context(httpx.Client(**given))
        streams = [stack.enter_context(listening(http, scene, after=0)) for _ in range(40)]
        scene.emits()
        assert [stream.next()["id"] for stream in streams] == ["1"] * 40
        assert held() - before <= 10
        for _ in range(30):  # pages go on being served, and leave nothing behind
            assert http.get(f"/conversations/{scene.conversation.pk}/").status_code == 200
        assert held() - before <= 10


def test_it_ends_at_once_when_the_process_stops(scene: Scene) -> None:
    with serving() as server, client(server, scene.staff) as http, listening(http, scene, after=0) as stream:
        scene.emits()
        stream.next()
        began = time.monotonic()
        assert server.stop() in (0, -signal.SIGTERM)  # uvicorn ends gracefully, then by the signal it got
        assert time.monotonic() - began < 5
        with pytest.raises(AssertionError, match="the stream ended"):
            stream.next()


def test_it_lets_readers_in_only(server: Server, scene: Scene) -> None:
    address = f"/conversations/{scene.conversation.pk}/stream/"
    with client(server, make_user(None)) as nobody:
        assert nobody.get(address).status_code == 403
    with client(server, scene.staff) as http:
        assert http.get("/conversations/4711/stream/").status_code == 404
        assert http.post(address).status_code in (403, 405)
    with httpx.Client(base_url=server.address, trust_env=False) as stranger:
        assert stranger.get(address).status_code == 302


@pytest.mark.parametrize("said", ["x", "-1", "9" * 40, "1.5"])
def test_it_takes_nonsense_for_the_beginning(server: Server, scene: Scene, said: str) -> None:
    scene.drafts("So far")
    with (
        client(server, scene.staff) as http,
        listening(http, scene, last=said) as stream,
    ):
        assert stream.next()["event"] == "draft"


def test_it_writes_a_field_for_every_line() -> None:
    assert message("draft", "a\r\nb\n\nc", id=7) == b"event: draft\nid: 7\ndata: a\ndata: b\ndata: \ndata: c\n\n"
