"""Starting: what is refused, with one sentence; and what a process must not import."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.stripe.process import Sandbox, command, running, secrets


def refused(words: list[str], **given: str) -> str:
    """Run a command line that must fail and return its one sentence."""
    done = subprocess.run(words, env=secrets(**given), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


@pytest.mark.parametrize("key", ["sk_live_51Hx", "rk_live_51Hx"])
def test_it_refuses_live_keys(tmp_path: Path, key: str) -> None:
    sentence = refused(command(tmp_path / "data", "--port", "0"), key=key)
    assert "refuses live keys" in sentence
    assert key not in sentence


def test_it_refuses_options_that_cannot_work(tmp_path: Path) -> None:
    assert "begins with sk_test_" in refused(command(tmp_path, "--port", "0"), key="pk_test_x")
    reachable = command(tmp_path, "--port", "0", "--webhook-url", "http://127.0.0.1:9/")
    assert "STRIPE_SANDBOX_WEBHOOK_SECRET" in refused(reachable, secret="")
    assert "not an http" in refused(command(tmp_path, "--port", "0", "--webhook-url", "ftp://127.0.0.1/"))


def test_it_refuses_a_taken_port_and_an_unusable_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refused(command(tmp_path / "data", "--port", str(taken.getsockname()[1])))
    (tmp_path / "file").touch()
    assert "cannot start" in refused(command(tmp_path / "file", "--port", "0"))


def test_a_folder_has_one_process(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        assert "Another Stripe sandbox" in refused(command(tmp_path / "data", "--port", "0"))


def test_it_imports_neither_django_nor_the_other_apps_nor_stripe() -> None:
    apps = {"django", "stripe", "config", "billing", "agent", "escalations", "outbox", "ledger", "psycopg"}
    code = "import sys, sandbox.stripe.__main__; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not apps & set(done.stdout.split())


def test_control_calls_need_the_key_and_health_does_not(sandbox: Sandbox) -> None:
    assert sandbox.session.get(f"{sandbox.base}/_sandbox/health").json()["status"] == "ok"
    for method, path in (("GET", "money"), ("GET", "objects"), ("POST", "clock"), ("POST", "faults"), ("DELETE", "faults")):
        assert sandbox.session.request(method, f"{sandbox.base}/_sandbox/{path}").status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("clock", b'{"advance": -1}', "advance"),
        ("clock", b"{", "not JSON"),
        ("clock", b"[]", "not a JSON object"),
        ("settle", b'{"id": "pi_none", "status": "succeeded"}', "no object pi_none"),
        ("webhooks", b'{"action": "pause"}', "without --webhook-url"),
        ("nothing", b"{}", "There is no POST /_sandbox/nothing"),
    ],
)
def test_a_control_call_that_makes_no_sense_gets_a_sentence(sandbox: Sandbox, path: str, body: bytes, says: str) -> None:
    headers = {"Authorization": "Bearer sk_test_of_the_tests"}
    answer = sandbox.session.post(f"{sandbox.base}/_sandbox/{path}", data=body, headers=headers)
    assert answer.status_code in (400, 404)
    assert says in answer.json()["error"]
