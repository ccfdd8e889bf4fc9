"""How `pytest -n 4 --dist loadgroup --no-loadscope-reorder` shares the files out: the long ones first, so none is waited for.

A file stays in one process. The files that use the running instance (`tests.stack`) are shared out to two processes, those of
`tests/browser` and the others: each starts one instance.
"""

import pytest
from _pytest.nodeid import NodeId

INSTANCE = "stack"
BROWSER = "browser"
# The longest, longest first; one that is missing here costs time only.
LONG = (
    INSTANCE,
    BROWSER,
    "tests/matrix/test_matrix.py",
    "tests/sandbox/test_chaos.py",
    "tests/escalations/test_matrix.py",
    "tests/agent/test_zombies.py",
    "tests/infrastructure/test_pooler.py",
    "tests/agent/test_crashes.py",
    "tests/infrastructure/test_broker.py",
    "tests/infrastructure/test_postgres.py",
    "tests/outbox/reconciled/test_every_exit.py",
    "tests/infrastructure/test_sessions.py",
    "tests/agent/test_browser.py",
    "tests/agent/test_worker.py",
    "tests/agent/test_stream.py",
    "tests/outbox/test_zombies.py",
    "tests/agent/test_clocks.py",
    "tests/escalations/test_browser.py",
    "tests/outbox/test_worker.py",
    "tests/outbox/test_crashes.py",
    "tests/sandbox/test_servers.py",
    "tests/infrastructure/test_commits.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group the tests by what they share, and begin with the groups that take long."""
    instance = {_file(item) for item in items if INSTANCE in getattr(item, "fixturenames", ())}
    group = {item: _group(_file(item)) if _file(item) in instance else _file(item) for item in items}
    if config.getoption("loadgroup", default=False):
        for item in items:
            # What xdist makes of a mark `xdist_group`; but it writes where pytest 9.2 does not look any more.
            item._id = NodeId.parse(f"{item.nodeid}@{group[item]}")
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(group[item], len(place)))


def _group(file: str) -> str:
    return BROWSER if file.startswith("tests/browser/") else INSTANCE


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
