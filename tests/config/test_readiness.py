"""A process has done what takes long at first use by the time it says that it is ready."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import databases, forks, plugin
from tests.config.beginnings import web, worker

pytestmark = pytest.mark.usefixtures("database")
CONNECTED = {"pool": True, "bell": True, "events": True}
READY = CONNECTED | {"ready": True, "pages": False}  # a worker has imported no page
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture
def begun(tmp_path: Path) -> Callable[..., tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return a function that begins a process as a login, and returns what it had when it was ready, and what it logged."""

    def begin(login: str, main: Callable[[Path], None], **env: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        said, log, ready = tmp_path / "said", tmp_path / "log", tmp_path / "ready"
        address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)
        given = {
            "DATABASE_URL": address,
            "BACKSTOP_LOGIN": login,
            "BACKSTOP_READY_FILE": str(ready),
            "STRIPE_API_KEY": "sk_test_",
        }
        process = forks.start(main, said, env=os.environ | {"BACKSTOP_DATA": str(tmp_path)} | given | env, log=log)
        process.join(60)
        assert process.exitcode == 0, log.read_text()
        return json.loads(said.read_text()), [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]

    return begin


def test_an_agent_worker_has_its_graph_and_model_when_it_is_ready(begun: Any) -> None:
    had, logged = begun("agent", worker)
    assert had == READY | {"compiled": True, "installed": True, "_schema": True, "system": True}
    assert [line for line in logged if line["level"] != "info"] == []


def test_an_outbox_worker_has_what_plugs_into_a_delivery_when_it_is_ready(begun: Any) -> None:
    had, logged = begun("outbox", worker)
    assert had == READY | {"plugged": True}
    assert [line for line in logged if line["level"] != "info"] == []


def test_a_web_process_is_connected_when_it_begins_to_listen(begun: Any) -> None:
    had, _ = begun("web", web)
    assert had == CONNECTED | {"answers": ["lifespan.startup.complete", "lifespan.shutdown.complete"]}


@pytest.mark.parametrize(("login", "main"), [("outbox", worker), ("web", web)])
def test_a_process_begins_also_without_the_broker_and_says_so(begun: Any, login: str, main: Any) -> None:
    had, logged = begun(login, main, REDIS_URL=NOBODY)
    missed = {line["step"]: line for line in logged if line["event"] == "config.readiness.missed"}
    assert set(missed) == {"outbox.bell.connect", "agent.events.connect"}
    assert all("exception" not in line for line in missed.values())
    assert had["pool"] and (had.get("ready") or had["answers"])


def test_a_wrong_setting_is_told_and_left_to_its_first_use(begun: Any) -> None:
    had, logged = begun("agent", worker, BACKSTOP_MODEL="nobody:nothing")
    [missed] = [line for line in logged if line["event"] == "config.readiness.missed"]
    assert (missed["step"], had["ready"], had["compiled"]) == ("agent.readiness.prepare", True, True)
    assert "nobody" in missed["exception"]
