"""Bells and tasks: whoever is rung is there, in the worker that is rung."""

import ast
from collections.abc import Iterator

from django.conf import settings

from config.celery import APPS, app
from tests.architecture import sources


def rung() -> Iterator[str]:
    """Yield the task names that the beat and `bell.ring("…")` say."""
    yield from (entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values())
    for source in sources.ours():
        for call in source.calls("ring"):
            if call.args and isinstance(call.args[0], ast.Constant):
                yield call.args[0].value


def test_a_bell_rings_in_a_worker_that_has_the_task() -> None:
    app.loader.import_default_modules()
    names = set(rung())
    assert names <= set(app.tasks)
    assert [name for name in names if not _heard(name)] == []


def _heard(name: str) -> bool:
    """Say whether the worker of the queue in which a bell rings imports its task."""
    queue = app.amqp.router.route({}, name)["queue"].name
    home = app.tasks[name].run.__module__.partition(".")[0]
    return home in APPS.get(queue, [queue])
