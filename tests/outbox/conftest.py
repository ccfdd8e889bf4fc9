"""A provider for the session, lifted of its faults for each test; a desk; the settings that a relay has."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from tests import lending
from tests.billing import makers
from tests.outbox import provider as providers
from tests.outbox.desk import Desk
from tests.outbox.provider import Provider


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """Run one provider for all tests; its objects are told apart by the uid of their message."""
    with providers.running(tmp_path_factory.mktemp("stripe")) as running:
        yield running


@pytest.fixture
def provider(sandbox: Provider, settings: Any) -> Provider:
    """Point the gateway at the provider, which has no faults."""
    sandbox.call("DELETE", "faults")
    settings.STRIPE_API_KEY = providers.API_KEY
    settings.STRIPE_API_BASE = sandbox.base
    settings.STRIPE_TIMEOUTS = (3, 2)
    return sandbox


@pytest.fixture
def outbox_address(database: None) -> str:
    """Return the address of the test's database as the outbox login."""
    return lending.address("outbox")


@pytest.fixture
def desk(owner: Any, agent: Any, provider: Provider) -> Iterator[Desk]:
    """Return a desk whose customer has a card that works."""
    with lending.pool("outbox") as pool:
        made = Desk(owner=owner, agent=agent, pool=pool, provider=provider, customer=makers.make_customer(owner))
        made.card("pm_card_visa")
        yield made


@pytest.fixture
def admin(desk: Desk) -> Client:
    """Return a client that administers."""
    client = Client()
    user = get_user_model().objects.create_user("admin1")
    user.groups.add(Group.objects.get(name="admin"))
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
