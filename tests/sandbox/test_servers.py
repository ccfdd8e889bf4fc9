"""The embedded PostgreSQL and Valkey: real processes, killed the hard way."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis

from sandbox.servers import CannotStart, accounts, identities, postgres, valkey, wheels
from tests.stack import open_folder
from tests.waiting import until

START = (
    "import sys; from pathlib import Path; from sandbox.servers import postgres; postgres.Server(data=Path(sys.argv[1])).start()"
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Return a directory whose path has a space, as homes have."""
    with open_folder() as made:
        (made / "an instance").mkdir()
        yield made / "an instance"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[postgres.Server]:
    """Return one PostgreSQL for this module; its data are not worth an fsync."""
    found = postgres.Server(data=folder / "postgres", settings=postgres.QUICK)
    found.start()
    with psycopg.connect(found.superuser_url(), autocommit=True) as conn:
        conn.execute("CREATE ROLE clerk LOGIN PASSWORD 'open sesame'")
        conn.execute("CREATE TABLE kept (id int PRIMARY KEY)")
    yield found
    found.stop()


def postmaster(server: postgres.Server) -> int:
    """Return the server's pid; it must run."""
    pid = server.postmaster()
    assert pid
    return pid


def kept(server: postgres.Server) -> list[int]:
    """Return the numbers that were committed."""
    with psycopg.connect(server.superuser_url()) as conn:
        return [row[0] for row in conn.execute("SELECT id FROM kept ORDER BY id")]


def test_it_is_version_18_and_writes_safely_by_default(server: postgres.Server) -> None:
    with psycopg.connect(server.superuser_url()) as conn:
        assert conn.info.server_version // 10000 == 18
        assert conn.execute("SHOW listen_addresses").fetchone() == ("",)
    assert not {"fsync", "synchronous_commit", "full_page_writes"} & postgres.SETTINGS.keys()


def test_it_asks_every_login_but_its_supervisor_for_a_password(server: postgres.Server) -> None:
    with psycopg.connect(server.url(user="clerk", database="postgres", password="open sesame")):
        pass
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url(user="clerk", database="postgres", password="wrong"))
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(server.url(user="clerk", database="postgres"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_another_account_of_the_machine_is_not_its_superuser(server: postgres.Server) -> None:
    psql = wheels.postgres(server.account) / "psql"
    url = server.superuser_url()
    done = subprocess.run([psql, url, "-c", "SELECT 1"], capture_output=True, text=True, cwd="/", **server.account.arguments())
    assert "Peer authentication failed" in done.stderr


def test_starting_it_again_changes_nothing(server: postgres.Server) -> None:
    before = postmaster(server)
    server.start()
    assert postmaster(server) == before


def test_four_starters_at_once_make_one_server(folder: Path) -> None:
    data = folder / "raced"
    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda _: subprocess.run([sys.executable, "-c", START, data], capture_output=True, text=True), range(4))
        )
    found = postgres.Server(data=data)
    try:
        assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 4
        assert found.postmaster()
    finally:
        found.stop()


def test_what_was_committed_outlives_a_kill_of_the_server(server: postgres.Server) -> None:
    with psycopg.connect(server.superuser_url(), autocommit=True) as conn:
        conn.execute("INSERT INTO kept VALUES (1)")
        os.kill(postmaster(server), signal.SIGKILL)
    server.start()
    assert 1 in kept(server)


def test_it_survives_a_kill_of_a_backend(server: postgres.Server) -> None:
    with psycopg.connect(server.superuser_url()) as conn:
        os.kill(conn.info.backend_pid, signal.SIGKILL)
    until(server.ready, what="an answer")


@pytest.mark.parametrize("content", ["", "torn", str(os.getpid()), "999999999"], ids=["empty", "torn", "another's", "gone"])
def test_a_stale_lock_does_not_keep_it_from_starting(server: postgres.Server, content: str) -> None:
    server.stop()
    (server.data.resolve() / "postmaster.pid").write_text(content)
    server.start()
    assert server.postmaster()


def test_stopping_it_leaves_nothing_and_can_be_said_twice(server: postgres.Server) -> None:
    server.stop()
    server.stop()
    assert not server.postmaster()
    assert not server.ready()
    server.start()


def test_two_servers_stand_side_by_side(server: postgres.Server, folder: Path) -> None:
    other = postgres.Server(data=folder / "other", settings=postgres.QUICK)
    other.start()
    try:
        assert postmaster(other) != postmaster(server)
    finally:
        other.stop()
    assert server.ready()


def test_data_of_another_version_are_refused_in_one_sentence(folder: Path) -> None:
    data = folder / "old"
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    with pytest.raises(CannotStart, match="holds data of PostgreSQL 15, not 18"):
        postgres.Server(data=data).start()


def test_a_missing_wheel_is_named() -> None:
    with pytest.raises(CannotStart, match=r"The package no-such-wheel is not installed: run `make install`\."):
        wheels.package("no_such_wheel")


def test_a_full_disk_is_named() -> None:
    output = 'FATAL:  could not extend file "base/1/2": No space left on device'
    assert postgres.reason(output, "PostgreSQL stopped") == "The disk is full: free some space and start again."


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's server runs as that user")
def test_as_root_it_runs_as_somebody_else_even_below_a_private_directory(server: postgres.Server, tmp_path: Path) -> None:
    import psutil

    tmp_path.chmod(0o700)
    private = postgres.Server(data=tmp_path / "postgres", settings=postgres.QUICK)
    private.start()
    try:
        assert psutil.Process(postmaster(private)).uids().real == accounts.for_servers().uid != 0
    finally:
        private.stop()
        shutil.rmtree(private.data.resolve().parent)


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[valkey.Server]:
    """Return one Valkey for this module."""
    found = valkey.Server(data=folder / "valkey")
    found.start()
    yield found
    found.stop()


def test_the_broker_answers_and_starting_it_again_changes_nothing(broker: valkey.Server) -> None:
    before = broker.pid()
    broker.start()
    assert broker.pid() == before
    with redis.Redis.from_url(broker.url()) as client:
        assert client.ping()


def test_the_broker_starts_again_after_a_kill(broker: valkey.Server) -> None:
    os.kill(broker.pid() or 0, signal.SIGKILL)
    broker.start()
    assert broker.ready()


def test_the_broker_starts_over_a_stale_pid_file(broker: valkey.Server) -> None:
    broker.stop()
    (broker.data / "pid").write_text(str(os.getpid()))
    broker.start()
    assert broker.ready()


def test_a_broker_that_hangs_is_replaced(broker: valkey.Server) -> None:
    hung = broker.pid() or 0
    os.kill(hung, signal.SIGSTOP)
    broker.start()
    assert broker.ready()
    assert broker.pid() != hung


def test_a_process_is_known_by_its_pid_and_its_birth() -> None:
    mine = identities.of(os.getpid())
    assert mine
    assert identities.living(mine)
    assert not identities.living(identities.Identity(pid=mine.pid, created=mine.created - 60))
    child = subprocess.Popen(["true"])
    zombie = identities.of(child.pid)
    until(lambda: zombie is None or not identities.living(zombie), what="the end of a process that nobody has waited for")
    child.wait()
