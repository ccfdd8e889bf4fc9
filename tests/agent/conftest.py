"""Fixtures of the chat's and the driver's tests."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.test import Client

from tests.agent.batches import Desk, make_customer
from tests.agent.scenes import Scene, make_scene, make_user
from tests.agent.talks import Talk

Connection = psycopg.Connection[Any]


@pytest.fixture
def scene(desk: Desk, outbox: Connection) -> Scene:
    """Return an empty conversation about the desk's customer."""
    return make_scene(desk, outbox)


@pytest.fixture
def as_role(database: None) -> Callable[[str | None], Client]:
    """Return a function that gives a client logged in with a role, or with none."""

    def client(role: str | None) -> Client:
        made = Client()
        made.force_login(make_user(role), backend="django.contrib.auth.backends.ModelBackend")
        return made

    return client


@pytest.fixture
def support(scene: Scene) -> Client:
    """Return a client logged in as the scene's staff member."""
    made = Client()
    made.force_login(scene.staff, backend="django.contrib.auth.backends.ModelBackend")
    return made


@pytest.fixture
def talk(agent_pool: Any, owner: Connection, web: Connection) -> Talk:
    """Return a conversation that can be driven, about a customer with €120.00 of credit."""
    return Talk(pool=agent_pool, owner=owner, web=web, customer=make_customer(owner, credit_minor=12_000))
