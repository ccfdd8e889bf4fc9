"""`manage.py up`, `down` and `status`: real instances, whose parts and whose supervisor are killed."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import psutil
import psycopg
import pytest
from playwright.sync_api import Page
from psycopg.conninfo import conninfo_to_dict

from sandbox.servers import postgres, valkey
from sandbox.supervisor import children, files, instances, records
from sandbox.supervisor.parts import Part
from tests import stack as stacks
from tests.pages import log_in
from tests.stack import Stack, manage
from tests.waiting import until

PARTS = ["postgres", "valkey", "stripe", "web", "agent", "outbox", "keeper", "beat"]
pytestmark = pytest.mark.timeout(180)


def running(found: dict[str, object]) -> list[str]:
    """Return the names of the parts that work."""
    return [part["name"] for part in found["parts"] if part["state"] == "running"]  # type: ignore[attr-defined]


def alive(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def healthy(address: str) -> bool:
    """Say whether the web server answers for itself, its database and its broker."""
    with urlopen(f"{address}/healthz", timeout=5) as answer:  # noqa: S310  # our own address
        return bool(answer.status == 200)


# -- one instance ------------------------------------------------------------------------------
def test_everything_runs_and_status_says_so_to_programs(stack: Stack) -> None:
    done = manage("status", "--data", str(stack.data), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["state"]) == (0, "ready")
    assert running(found) == PARTS
    assert found["address"] == stack.address
    assert healthy(stack.address)


def test_the_three_people_it_printed_can_log_in(stack: Stack, new_page: Callable[[], Page]) -> None:
    for role in ("support", "reviewer", "admin"):
        log_in(new_page(), *stack.logins[role])


def test_its_secrets_are_for_its_owner_only(stack: Stack) -> None:
    for name in ("instance.json", "processes.json"):
        assert (stack.data / name).stat().st_mode & 0o777 == 0o600
    assert (stack.data / "logs").stat().st_mode & 0o777 == 0o700


def test_no_secret_is_in_the_environment_of_a_part(stack: Stack) -> None:
    secrets = [*stack.content["database"].values(), stack.content["secret_key"], *(word for _, word in stack.logins.values())]
    for name in ("web", "agent", "outbox", "keeper", "beat"):
        told = psutil.Process(stack.pid(name)).environ().values()
        assert not [value for value in told if any(secret in value for secret in secrets)]


def test_no_secret_is_on_a_command_line(stack: Stack) -> None:
    """Everybody on the machine can read those, of the servers and of every process that a part has started too."""
    content = stack.content
    secrets = [content["stripe"]["api_key"], content["stripe"]["webhook_secret"], content["secret_key"]]
    secrets += [str(conninfo_to_dict(url).get("password") or url) for url in content["database"].values()]
    secrets += [password for _, password in stack.logins.values()]
    family = psutil.Process(stack.status()["supervisor"]).children(recursive=True)
    lines = [" ".join(one.cmdline()) for one in family if one.is_running()]
    assert len(lines) >= 6
    assert not [line for line in lines if any(secret in line for secret in secrets)]


def test_two_review_and_two_administer() -> None:
    """What is large is signed by two, and a limit is loosened by two; an older instance gets whom it lacks."""
    first = {"name": "admin", "password": "known", "role": "admin"}
    people = instances.people({"logins": [first]})
    assert people[0] == first
    assert sorted(one["role"] for one in people) == ["admin", "admin", "reviewer", "reviewer", "support"]
    assert instances.people({"logins": people}) == people


def test_each_part_has_its_own_login(stack: Stack) -> None:
    for name in ("web", "agent", "outbox", "keeper"):
        assert psutil.Process(stack.pid(name)).environ()["BACKSTOP_LOGIN"] == name
    with stack.connect("superuser") as conn:
        found = {row[0] for row in conn.execute("SELECT DISTINCT usename FROM pg_stat_activity WHERE usename LIKE 'backstop%'")}
    assert "backstop_web" in found
    assert found <= {"backstop_web", "backstop_agent", "backstop_outbox", "backstop_keeper"}


def test_starting_it_again_while_it_runs_prints_the_same_logins(stack: Stack) -> None:
    before = stack.status()["supervisor"]
    done = manage("up", "--data", str(stack.data), "--detach")
    assert done.returncode == 0
    assert stack.address in done.stdout
    assert all(password in done.stdout for _, password in stack.logins.values())
    assert stack.status()["supervisor"] == before


def restarts_of(stack: Stack, name: str) -> int:
    """Return how often a part was started again."""
    return next(int(part["restarts"]) for part in stack.status()["parts"] if part["name"] == name)


def test_a_worker_that_is_killed_is_started_again(stack: Stack) -> None:
    before, restarts = stack.pid("keeper") or 0, restarts_of(stack, "keeper")
    os.kill(before, signal.SIGKILL)
    until(lambda: stack.pid("keeper") not in (None, before), seconds=20, what="another worker")
    until(lambda: stack.status()["state"] == "ready", seconds=30, what="everything ready")
    assert restarts_of(stack, "keeper") == restarts + 1


@pytest.mark.parametrize("server", ["postgres", "valkey"])
def test_a_server_that_is_killed_is_started_again(stack: Stack, server: str) -> None:
    before = stack.pid(server) or 0
    os.kill(before, signal.SIGKILL)
    until(lambda: stack.pid(server) not in (None, before), seconds=20, what="another server")
    until(lambda: stack.status()["state"] == "ready" and healthy(stack.address), seconds=40, what="everything ready")


def test_after_a_kill_of_the_supervisor_the_next_start_goes_on_with_the_same_data(stack: Stack) -> None:
    before, content = stack.status(), stack.content
    os.kill(before["supervisor"], signal.SIGKILL)
    until(lambda: stack.status()["state"] == "abandoned", what="an abandoned instance")
    after = stacks.up(stack.data)
    assert after.content == content
    assert after.status()["state"] == "ready"
    old = {part["pid"] for part in before["parts"] if part["name"] not in ("postgres", "valkey")}
    assert not [pid for pid in old if alive(pid)]


def test_down_stops_everything_and_nothing_else_and_a_second_start_goes_on_with_the_same_data(stack: Stack) -> None:
    found = stack.status()
    pids = [found["supervisor"], *(part["pid"] for part in found["parts"])]
    with stack.connect("owner") as conn:
        conn.execute("CREATE TABLE public.kept_by_test ()")
    env = os.environ | {"BACKSTOP_DATA": str(stack.data)}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env) as bystander:
        stacks.down(stack.data)
        assert bystander.poll() is None
        bystander.communicate(b"\n")
    assert stack.status()["state"] == "down"
    assert not [pid for pid in pids if alive(pid)]

    with ThreadPoolExecutor(2) as pool:  # two starts at once make one instance
        starts = list(pool.map(lambda _: manage("up", "--data", str(stack.data), "--detach"), range(2)))
    assert [start.returncode for start in starts] == [0, 0], starts
    assert sum("It was running already." in start.stdout for start in starts) == 1
    told = "".join(start.stdout for start in starts)
    assert "tables" in told
    assert "people" not in told
    assert "demo data" not in told
    assert instances.read(stack.data)["logins"] == stack.content["logins"]
    with stack.connect("owner") as conn:
        conn.execute("DROP TABLE public.kept_by_test")


def test_down_with_nothing_running_says_so(tmp_path: Path) -> None:
    done = manage("down", "--data", str(tmp_path / "none"))
    assert (done.returncode, done.stdout.strip()) == (0, "Nothing was running.")


# -- beside it, another one on real things, in the foreground -----------------------------------
@pytest.fixture(scope="module")
def real() -> Iterator[dict[str, str]]:
    """Return the environment that names a PostgreSQL (by a role that may make roles) and a broker of somebody else."""
    with stacks.open_folder() as folder:
        yield from real_things(folder)


def real_things(folder: Path) -> Iterator[dict[str, str]]:
    """Start a PostgreSQL and a broker, and stop them after the yield."""
    server, broker = postgres.Server(data=folder / "postgres", settings=postgres.QUICK), valkey.Server(data=folder / "valkey")
    server.start()
    broker.start()
    with psycopg.connect(server.superuser_url(), autocommit=True) as conn:
        conn.execute("CREATE ROLE admin LOGIN CREATEROLE CREATEDB PASSWORD 'admin'")
        conn.execute("CREATE DATABASE ours OWNER admin")
    url = server.url(user="admin", database="ours", password="admin")
    yield {"DATABASE_URL": url, "REDIS_URL": broker.url(), "STRIPE_API_KEY": "sk_test_of_somebody"}
    server.stop()
    broker.stop()


def test_another_instance_on_real_things_stands_beside_it_until_ctrl_c(
    stack: Stack, real: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "instance"
    port = instances.free_port()
    env = {name: value for name, value in os.environ.items() if name not in stacks.OURS} | real
    with open(tmp_path / "output", "w") as output:
        command = [sys.executable, "manage.py", "up", "--data", str(data), "--port", str(port)]
        process = subprocess.Popen(command, cwd=stacks.BASE, env=env, stdout=output, stderr=output)
    try:
        told = until(lambda: "Stop it with" in (text := (tmp_path / "output").read_text()) and text, seconds=90, what="a start")
        assert f"http://127.0.0.1:{port}" in told
        assert healthy(f"http://127.0.0.1:{port}")
        found = json.loads(manage("status", "--data", str(data), "--json", **real).stdout)
        assert running(found) == ["web", "agent", "outbox", "keeper", "beat"]
        assert found["settlement"] == "Stripe: look-ups alone, because STRIPE_WEBHOOK_SECRETS is not set."
        assert stack.status()["state"] == "ready"
        assert not (data / "postgres").exists()
        assert "sk_test_of_somebody" not in (data / "instance.json").read_text()
        with psycopg.connect(files.read(data / "instance.json")["database"]["owner"]) as conn:
            assert conn.execute("SELECT count(*) FROM public.billing_customer").fetchone() == (0,)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert "Stopped." in (tmp_path / "output").read_text()
    assert not records.Record.of(data).children
    assert postgres.Server(data=stack.data / "postgres").ready()


# -- one sentence and exit 1 -------------------------------------------------------------------
def refused(*words: str, **more: str) -> str:
    """Run `up`, which must refuse in one sentence without a traceback; return the sentence."""
    done = manage("up", "--detach", *words, **more)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("--data", str(tmp_path / "instance"), "--port", str(port))
    assert sentence == f"Port {port} of 127.0.0.1 is taken or not allowed: choose another one with --port."
    assert not (tmp_path / "instance" / "postgres").exists()


def test_a_database_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    url = f"postgresql://admin@127.0.0.1:{instances.free_port()}/ours"
    sentence = refused("--data", str(tmp_path / "instance"), "--port", "0", DATABASE_URL=url)
    assert "The PostgreSQL of DATABASE_URL does not answer" in sentence


def test_a_broker_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    sentence = refused("--data", str(tmp_path / "instance"), "--port", "0", REDIS_URL="redis://127.0.0.1:1/0")
    assert "The broker of REDIS_URL does not answer" in sentence


def test_a_role_that_may_not_make_logins_is_refused(real: dict[str, str], tmp_path: Path) -> None:
    with psycopg.connect(real["DATABASE_URL"], autocommit=True) as conn:
        conn.execute("CREATE ROLE nobody_much LOGIN PASSWORD 'x'")
    url = real["DATABASE_URL"].replace("admin:admin@", "nobody_much:x@").replace("/ours", "/postgres")
    sentence = refused("--data", str(tmp_path / "instance"), "--port", "0", **real | {"DATABASE_URL": url})
    assert sentence == "The role of DATABASE_URL may not create roles: Backstop makes its five logins with it."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_full_disk_is_refused() -> None:
    with stacks.open_folder() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0755", "tmpfs", folder], capture_output=True)
        if mounted.returncode:
            pytest.skip("this machine lets nobody mount a small disk")
        try:
            sentence = refused("--data", str(folder / "instance"), "--port", "0")
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    assert sentence == "The disk is full: free some space and start again."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from sandbox.servers import CannotStart, accounts; os.setuid(65534)\n"
        "try: accounts.check_owner(Path(sys.argv[1]))\nexcept CannotStart as fault: print(fault)"
    )
    done = subprocess.run([sys.executable, "-c", code, "/etc"], capture_output=True, text=True, cwd=stacks.BASE)
    assert done.stdout.strip() == "/etc belongs to another user: choose another --data or start as that user."


# -- small parts -------------------------------------------------------------------------------
def test_a_supervisor_that_dies_before_it_wrote_a_process_down_leaves_none(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    process = subprocess.Popen(["/bin/sh", "-c", children.WAIT, "sh", "touch", str(mark)], stdin=subprocess.PIPE)
    process.communicate()
    assert process.returncode != 0
    assert not mark.exists()


def test_a_part_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess; signal.signal(15, signal.SIG_IGN); subprocess.Popen(['sleep', '60'])\n"
        "print('on', flush=True); signal.pause()"
    )
    part = Part(
        name="stubborn", command=(sys.executable, "-c", code), environment=dict(os.environ), ready=lambda pid: True, patience=0.2
    )
    (tmp_path / "logs").mkdir()
    child = children.Child(part, data=tmp_path, directory=tmp_path, record=records.Record(file=tmp_path / "processes.json"))
    child.start()
    until(lambda: "on" in child.log.read_text(), what="a process that ignores the signal")
    family = psutil.Process(child.process.pid if child.process else 0).children()
    children.stop_all([child])
    assert child.ended() == -signal.SIGKILL
    until(
        lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family), what="the end of its family"
    )


def test_a_file_is_never_half_written(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    files.write(file, {"a": 1})
    with pytest.raises(TypeError):
        files.write(file, {"a": object()})
    assert files.read(file) == {"a": 1}
    assert [one.name for one in tmp_path.iterdir()] == ["some.json"]
