"""An act that is cut off, or whose request comes to nothing, leaves nothing armed and does not keep the next one waiting."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from django.test import override_settings

from sandbox.breaking import acts, lifting
from sandbox.breaking.demonstration import CannotStrike
from sandbox.breaking.facts import Facts
from sandbox.breaking.following import ended
from sandbox.breaking.runs import Run
from sandbox.supervisor import instances
from tests.sandbox.stripe.process import KEY, Sandbox, running

AWAY = {"when": "before", "mode": "502", "method": "GET", "path": "/v1/.*", "count": None}
NOTHING = Facts(
    state="idle", fence=1, owner=None, held=False, queued=0, attempts=(), executed=0,
    message=None, sending="", unknown=False, source="", payments=(),
)  # fmt: skip


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Sandbox]:
    """Run the Stripe sandbox of an instance."""
    (tmp_path / "run").mkdir()
    with running(tmp_path / "stripe", webhook_url=f"http://127.0.0.1:{instances.free_port()}/") as sandbox:
        instances.write(tmp_path, {"stripe": {"api_base": sandbox.base, "api_key": KEY, "webhook_secret": "whsec_x"}})
        with override_settings(DATA_DIR=tmp_path):
            yield sandbox


def is_away(sandbox: Sandbox) -> bool:
    return bool(sandbox.control("faults")["faults"]) and sandbox.control("webhooks")["paused"]


def test_what_a_killed_process_left_at_stripe_is_lifted(provider: Sandbox, tmp_path: Path) -> None:
    mark = tmp_path / "run" / "act-at-stripe"
    with lifting.lifted() as told:
        told.control("POST", "webhooks", {"action": "pause"})
        told.control("POST", "faults", AWAY)
        lifting.lift_left()
        assert is_away(provider)  # whose act it is still lives
        left = mark.read_text()
    assert not is_away(provider) and not mark.exists()

    provider.control("webhooks", {"action": "pause"})
    provider.control("faults", AWAY)
    mark.write_text(json.dumps(json.loads(left) | {"created": 1.0}))  # of a process that had this number before
    lifting.lift_left()
    assert not is_away(provider) and not mark.exists()


def test_a_sandbox_that_is_down_is_asked_another_time(provider: Sandbox, tmp_path: Path) -> None:
    mark = tmp_path / "run" / "act-at-stripe"
    lifting.lift_left()  # nothing was left
    mark.write_text(json.dumps({"pid": 0, "created": 1.0}))
    provider.kill()
    lifting.lift_left()
    assert mark.exists()


def test_a_worker_that_cannot_be_killed_leaves_no_fault(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with override_settings(DATA_DIR=tmp_path), pytest.raises(CannotStrike, match="no agent to kill right now"):
        acts.kill_worker(Run(act="worker", request=None, thread=str(uuid4())))
    assert not list((tmp_path / "run").glob("fault-*"))


def test_a_request_that_comes_to_nothing_has_ended() -> None:
    assert ended(NOTHING)  # refused, or stopped
    assert not ended(replace(NOTHING, queued=1))
    assert not ended(replace(NOTHING, state="running"))
    assert not ended(replace(NOTHING, message=uuid4(), sending="uncertain"))
    assert ended(replace(NOTHING, message=uuid4(), sending="succeeded", payments=(2300,)))
