"""The keeper's tasks as its worker runs them: on its own login, for a while at a time."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings as configured

from ledger import connections, tasks
from tests import databases, plugin
from tests.outbox.test_pruning import MAKE


@pytest.fixture(autouse=True)
def _as_keeper(database: None, settings: Any) -> Iterator[None]:
    """Let this process be the keeper's: another pool, which the next test does not find."""
    _forget_pool()
    settings.DATABASE_URL = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="keeper")
    yield
    _forget_pool()


def _forget_pool() -> None:
    connections.pool().close()
    connections._pool.cache_clear()


def made(owner: Any, *, days: int) -> list[int]:
    given = {"topic": "notify.email", "payload": '{"escalation": 1}', "state": "succeeded", "days": days, "number": 2}
    return [row[0] for row in owner.execute(MAKE, given).fetchall()]


def rung() -> list[Any]:
    """Return the arguments of each bell that rang for the pruning, and forget them."""
    broker = redis.Redis.from_url(configured.REDIS_URL)
    found = [item for item in broker.lrange("keeper", 0, -1) if json.loads(item)["headers"]["task"] == "ledger.prune"]
    for item in found:
        broker.lrem("keeper", 0, item)
    broker.close()
    return [json.loads(item)["headers"]["argsrepr"] for item in found]


def test_it_prunes_what_is_older_than_the_setting_says(owner: Any, settings: Any) -> None:
    settings.BACKSTOP_KEEP_DAYS = 60
    old, young = made(owner, days=61), made(owner, days=59)
    rung()

    tasks.prune()

    assert [row[0] for row in owner.execute("SELECT id FROM public.outbox_message ORDER BY id").fetchall()] == young
    assert not set(old) & set(young) and rung() == []


def test_a_new_task_goes_on_where_the_time_was_over(owner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = made(owner, days=500)
    monkeypatch.setattr(tasks, "BUDGET_SECONDS", 0.0)
    rung()

    tasks.prune(kept[0])

    assert rung() == [f"({kept[0]},)"]
    assert owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (2,)
