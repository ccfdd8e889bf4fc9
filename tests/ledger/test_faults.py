"""Fault points: what BACKSTOP_FAULT may say, when a fault strikes, and that every point is somewhere in the code."""

import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from ledger import faults
from ledger.faults import Armed, BadFault, Fault, Injected
from sandbox.supervisor import environments, injections
from tests import forks
from tests.architecture import sources


def test_a_fault_is_a_point_an_occurrence_an_action_and_perhaps_a_thread() -> None:
    thread = str(uuid4())
    assert faults.parse(f"batch.write:2:kill, checkpoint.put:1:sleep:{thread}") == [
        Fault(point="batch.write", occurrence=2, action="kill"),
        Fault(point="checkpoint.put", occurrence=1, action="sleep", thread=thread),
    ]
    assert faults.parse("") == []


@pytest.mark.parametrize(
    "text",
    ["batch.write", "batch.write:0:kill", "batch.write:x:kill", "batch.write:1:burn", "nowhere:1:kill", "batch.write:1:kill:a:b"],
)
def test_a_fault_that_is_not_understood_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadFault) as refused:
        faults.parse(text)
    assert str(refused.value).startswith("BACKSTOP_FAULT ")
    assert "\n" not in str(refused.value)


def test_it_strikes_once_at_its_occurrence_and_in_its_thread() -> None:
    armed = Armed(faults.parse("batch.write:2:raise:mine"), seconds=0)
    passed = [("batch.write", "mine"), ("batch.write", "other"), ("batch.commit", "mine"), *[("batch.write", "mine")] * 2]
    struck = [bool(armed.due(point, thread=thread)) for point, thread in passed]
    assert struck == [False, False, False, True, False]
    with pytest.raises(Injected):
        armed.strike(armed.faults[0])


def test_every_point_is_come_by_somewhere() -> None:
    engine = [source.text for source in sources.ours() if source.app != "sandbox" and source.name != "ledger/faults.py"]
    assert [point for point in faults.POINTS if not any(f'"{point}"' in text for text in engine)] == []


def run(**environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the checks in a process of its own."""
    env = os.environ | {"BACKSTOP_LOGIN": "web"} | environment
    return forks.run("manage.py", "check", env=env)


def test_production_settings_refuse_faults() -> None:
    refused = run(
        BACKSTOP_ENV="production", BACKSTOP_FAULT="batch.write:1:kill", DJANGO_SECRET_KEY="x" * 60, ALLOWED_HOSTS="a.example",
        DATABASE_URL="postgresql://backstop_web@/backstop", REDIS_URL="redis://127.0.0.1:6379/0",
    )  # fmt: skip
    assert refused.returncode != 0
    assert "BACKSTOP_FAULT is set, and it makes processes fail on purpose: unset it in production." in refused.stderr


def test_a_process_does_not_start_with_a_fault_that_would_never_strike() -> None:
    refused = run(BACKSTOP_FAULT="batch.wriet:1:kill")
    assert refused.returncode != 0
    assert "which is no fault point" in refused.stderr


def test_a_part_gets_a_fault_for_one_start_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("BACKSTOP_FAULT", "run.leased:1:kill")
    assert "BACKSTOP_FAULT" not in environments.for_child(name="agent", data=tmp_path, login="agent")
    assert injections.take(tmp_path, part="agent", first=True) == {"BACKSTOP_FAULT": "run.leased:1:kill"}
    assert injections.take(tmp_path, part="agent", first=False) == {}
    injections.arm(tmp_path, part="agent", fault="batch.write:1:kill")
    assert injections.take(tmp_path, part="outbox", first=False) == {}
    assert injections.take(tmp_path, part="agent", first=False) == {"BACKSTOP_FAULT": "batch.write:1:kill"}
    assert injections.take(tmp_path, part="agent", first=False) == {}
