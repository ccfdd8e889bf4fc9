"""Scenes, and people who look at them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.escalations.scenes import Scene, person


@pytest.fixture
def scene(agent_pool: Any, owner: Any, outbox: Any) -> Callable[..., Scene]:
    """Return a function that begins a conversation about a new customer."""

    def begin(**changes: Any) -> Scene:
        return Scene(pool=agent_pool, owner=owner, outbox=outbox, **changes)

    return begin


@pytest.fixture
def reviewer(database: None) -> Any:
    """Return a reviewer."""
    return person("priya", "reviewer")


@pytest.fixture
def browse(database: None) -> Callable[[Any], Client]:
    """Return a function that logs a person in."""

    def log_in(user: Any) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return log_in
